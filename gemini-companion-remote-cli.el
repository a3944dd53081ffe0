;;; gemini-companion-remote-cli.el --- Run CLIs on other hosts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The commands that connect and disconnect a host, and the methods by which
;; `gemini-companion-run' starts a CLI there, in a terminal of this Emacs.

;;; Code:

(require 'gemini-companion-choice)
(require 'gemini-companion-cli)
(require 'gemini-companion-clients)
(require 'gemini-companion-edit)
(require 'gemini-companion-names)
(require 'gemini-companion-proposal)
(require 'gemini-companion-remote)
(require 'gemini-companion-remote-names)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'map)

;;;; Questions

(defun gemini-companion-remote-cli--here ()
  "Return the place of a CLI of this buffer, if that is on another host.
For the value, see `gemini-companion-names-place'.  In the terminal of a CLI
on another host, that is its directory."
  (gemini-companion-names-place
   (or gemini-companion-session-remote-directory default-directory)))

(cl-defmethod gemini-companion-cli-host-agree ((host string))
  "Ask the user whether to connect HOST, the first time.
Signal an error if the answer is no, or if no command connects it."
  (gemini-companion-remote-command host :pipe nil)
  (unless (assoc host gemini-companion-remote-directories)
    (unless (y-or-n-p (format "Connect CLIs on %s, and share your open files \
there with them? " (gemini-companion-names-title host)))
      (user-error "Not connected"))
    (gemini-companion-cli-save 'gemini-companion-remote-directories
                               (append gemini-companion-remote-directories
                                       (list (list host))))))

;;;; A CLI in a terminal

(cl-defmethod gemini-companion-cli-host-connect ((host string) directory then)
  "Connect HOST for a CLI in DIRECTORY, and call THEN later."
  (gemini-companion-remote-connect host directory then))

(cl-defmethod gemini-companion-cli-host-rejoin ((_host string))
  "Connect the host of the current buffer, a terminal, again."
  (gemini-companion-connect))

(cl-defmethod gemini-companion-cli-host-command ((host string) root command)
  "Return the local command for COMMAND in ROOT on HOST, in a terminal."
  (gemini-companion-remote-run-command host root command))

;;;; A CLI that the user starts

(defun gemini-companion-remote-cli--report (host root problem)
  "Display that HOST is connected, or PROBLEM if it is non-nil.
ROOT is the workspace root there."
  (pcase-let (((map :problems :container)
               (cdr (assoc host gemini-companion-remote-names-hosts)))
              (title (gemini-companion-names-title host)))
    (cond (problem
           (message "%s" problem))
          (problems
           (message "%s is connected, but the discovery file could not \
be written there (%s); %s shows more"
                    title (string-join problems "; ")
                    (substitute-command-keys "\\[gemini-companion-status]")))
          (t
           (message "Connected to %s; run %s%s in %s there"
                    title
                    (if container
                        (mapconcat (lambda (entry) (concat entry " "))
                                   (gemini-companion-clients-append
                                    #'gemini-companion-client-container-entries)
                                   "")
                      "")
                    (string-join (seq-filter
                                  #'gemini-companion-client-port-variable
                                  gemini-companion-clients)
                                 " or ")
                    root)))))

;;;; Commands

;;;###autoload
(defun gemini-companion-connect ()
  "Wait for a CLI that you start by hand on another host.
The current buffer is one of a file or a directory there, or in a
directory that is the same here and there; see
`gemini-companion-remote-directories'.
`gemini-companion-run' connects, too, and starts the CLI."
  (interactive)
  (pcase-let ((`(,host ,directory . ,_)
               (or (gemini-companion-remote-cli--here)
                   (user-error "A local CLI connects by itself; switch to a \
buffer on another host"))))
    (gemini-companion-cli-host-agree host)
    (when (or (bound-and-true-p gemini-companion-mode) (gemini-companion-mode 1))
      (message "Connecting to %s..." (gemini-companion-names-title host))
      (gemini-companion-remote-connect
       host directory
       (apply-partially #'gemini-companion-remote-cli--report host)))))

;;;###autoload
(defun gemini-companion-disconnect (host)
  "Disconnect HOST, by default the one of this buffer.
CLIs there lose their connection, and their reviews are closed."
  (interactive
   (let* ((hosts (mapcar #'car gemini-companion-remote-names-hosts))
          (here (car (member (car (gemini-companion-remote-cli--here)) hosts)))
          (host (if (cdr hosts)
                    (gemini-companion-choice-read
                     "Disconnect"
                     (mapcar (lambda (host) (cons host host))
                             (if here (cons here (delete here hosts)) hosts))
                     'gemini-companion-host)
                  (car hosts))))
     (unless (member host hosts)
       (user-error (if hosts
                       "Enter a host that is connected"
                     "No remote host is connected")))
     (list host)))
  (message "Disconnected from %s" (gemini-companion-names-title host))
  (dolist (edit (gemini-companion-edits-open))
    (when (equal host (plist-get (gemini-companion-edit-session edit) :remote))
      (gemini-companion-proposal-close edit 'disconnected)))
  (gemini-companion-server-call 'remote-stop host)
  (gemini-companion-remote-drop host))

(provide 'gemini-companion-remote-cli)
;;; gemini-companion-remote-cli.el ends here
