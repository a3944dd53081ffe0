;;; gemini-companion-session.el --- The connected CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The sessions, which are the connected CLIs, their names for the user and the
;; names of their files, the terminal buffer of each, and its turn.  A session is a
;; plist of `:id'; `:remote', the name of the remote host in which it runs, if any;
;; `:client', a key of `gemini-companion-client-table'; and, if the server could find
;; them, `:version', and the `:pid', `:identity' and `:directory' of its process.
;; The identity differs for the next process with that PID.

;;; Code:

(require 'gemini-companion-cache)
(require 'gemini-companion-client)
(require 'gemini-companion-names)
(require 'map)

;;;; Lines

(defvar gemini-companion-session--all nil
  "The sessions that the server has reported, a list of plists.")

(defvar gemini-companion-session-changed-functions nil
  "Functions called after CLIs have connected or disconnected.
Each is called with the previous value of `gemini-companion-sessions'.")

(cl-defmethod gemini-companion-server-receive
  ((_method (eql 'sessions-update)) sessions)
  "Set the connected CLIs to SESSIONS, a list of plists."
  (let ((previous (gemini-companion-sessions)))
    (setq gemini-companion-session--all sessions)
    (run-hook-with-args 'gemini-companion-session-changed-functions previous)
    (force-mode-line-update t)
    t))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'session)))
  "Forget all CLIs, connected or not."
  (gemini-companion-server-receive 'sessions-update nil))

(cl-defmethod gemini-companion-part-lighter ((_part (eql 'session)))
  "Return the number of the CLIs for the mode line, or a tooltip if it is 0."
  (if-let* ((sessions (gemini-companion-sessions)))
      (list (format ":%d" (length sessions)))
    '("" . "No CLI is connected")))

(defun gemini-companion-sessions ()
  "Return the connected CLIs, a list of plists.
Each has an `:id', and usually a `:pid' and a `:directory'.  A CLI
that connects again keeps its old session beside the new one; it
counts once."
  (seq-uniq gemini-companion-session--all #'gemini-companion-session-same-p))

(defun gemini-companion-session-connected-p (session)
  "Return non-nil if SESSION is connected."
  (cl-member session gemini-companion-session--all
             :test #'gemini-companion-session--equal-p))

(defun gemini-companion-session--equal-p (a b)
  "Return non-nil if A and B are one session: its ID counts on its host."
  (and (equal (plist-get a :id) (plist-get b :id))
       (equal (plist-get a :remote) (plist-get b :remote))))

(defun gemini-companion-session-same-p (a b)
  "Return non-nil if A and B are sessions of the same CLI.
Sessions of different hosts never are, whatever a host says: a process
counts only on this host."
  (or (gemini-companion-session--equal-p a b)
      (and (not (plist-get a :remote))
           (not (plist-get b :remote))
           (plist-get a :pid)
           (eql (plist-get a :pid) (plist-get b :pid))
           (eql (plist-get a :identity) (plist-get b :identity)))))

(defun gemini-companion-session-title (session)
  "Return the name of the program of SESSION, such as \"Gemini CLI\"."
  (gemini-companion-client-title (plist-get session :client)))

(defun gemini-companion-session-place (directory remote)
  "Return the base name of DIRECTORY, or else the title of the host REMOTE.
Return nil if both are nil."
  (cond (directory
         (gemini-companion-names-shown
          (file-name-nondirectory (directory-file-name directory)) 30))
        (remote (gemini-companion-names-title remote))))

(defun gemini-companion-session-name (session)
  "Return a name of SESSION for the user, such as \"Qwen Code (shop)\".
If the directory and the host are unknown, or if another connected CLI
has that name, the name has more: \"Qwen Code (shop, process 12)\", or the
beginning of the `:id' of SESSION if the process is unknown."
  (pcase-let (((map :id :pid :directory :remote) session))
    (let* ((place (gemini-companion-session-place directory remote))
           (which (when (or (null place)
                            (gemini-companion-session--namesake-p session))
                    (cond (pid (format "process %d" pid))
                          (id (format "session %.8s" id))))))
      (format "%s (%s)" (gemini-companion-session-title session)
              (string-join (delq nil (list place which)) ", ")))))

(defun gemini-companion-session--namesake-p (session)
  "Return non-nil if another CLI has the title and the place of SESSION."
  (let ((name-of (lambda (session)
                   (pcase-let (((map :directory :remote) session))
                     (list (gemini-companion-session-title session)
                           (gemini-companion-session-place directory remote))))))
    (seq-some (lambda (other)
                (and (not (gemini-companion-session-same-p session other))
                     (equal (funcall name-of session) (funcall name-of other))))
              (gemini-companion-sessions))))

(defun gemini-companion-session-reconnect (condition)
  "Return how to connect the CLIs again that are connected now, or nil.
That is a phrase such as \"run /ide enable in Gemini CLI if CONDITION\".
CLIs that connect again by themselves are left out."
  (let ((titles (seq-group-by
                 (lambda (client)
                   (gemini-companion-client-get client :reconnect))
                 (seq-uniq (mapcar (lambda (session) (plist-get session :client))
                                   (gemini-companion-sessions))))))
    (when-let* ((phrases
                 (cl-loop for (command . clients) in titles
                          when command
                          collect (format "run %s in %s" command
                                          (mapconcat #'gemini-companion-client-title
                                                     clients " and ")))))
      (concat (string-join phrases ", ") " " condition))))

(defun gemini-companion-session-read (sessions)
  "Return the only one of SESSIONS, or read one; signal an error without any.
By default it is the first in a terminal of this Emacs."
  (if (null (cdr sessions))
      (or (car sessions)
          (user-error "No CLI is connected; %s starts one, and %s shows how a \
running one connects"
                      (substitute-command-keys "\\[gemini-companion-run]")
                      (substitute-command-keys "\\[gemini-companion-status]")))
    (gemini-companion-client-read
     "CLI" (mapcar (lambda (session)
                     (cons (gemini-companion-session-name session) session))
                   (seq-sort-by #'gemini-companion-session-terminal
                                (lambda (a b) (and a (not b)))
                                sessions)))))

;;;; Terminals

(defun gemini-companion-session-terminal (session)
  "Return the terminal buffer of SESSION in this Emacs, or nil.
If the CLI runs on a remote host, there must be one terminal of that
host, and no other CLI on it."
  (if-let* ((remote (plist-get session :remote)))
      (let ((sessions (seq-filter (lambda (other)
                                    (equal remote (plist-get other :remote)))
                                  (gemini-companion-sessions)))
            (buffers (seq-filter
                      (lambda (buffer)
                        (and (string-prefix-p
                              remote (or (buffer-local-value
                                          'gemini-companion-remote-terminal buffer)
                                         ""))
                             (process-live-p (get-buffer-process buffer))))
                      (buffer-list))))
        (unless (or (cdr sessions) (cdr buffers))
          (car buffers)))
    (let* ((pid (plist-get session :pid))
           ;; Each process that is asked for takes 0.1 ms; header lines call this.
           (found (gemini-companion-cache-get
                   (list 'terminal (plist-get session :id) pid)
                   (apply-partially #'gemini-companion-session--ancestor pid))))
      ;; If it has exited, a shell may have the terminal.
      (and (buffer-live-p found) (eql 0 (signal-process pid 0)) found))))

(defun gemini-companion-session--ancestor (pid)
  "Return the terminal buffer of the process PID or of one above it, or nil."
  (let (;; In a remote one, Tramp would ask for the processes there.
        (default-directory "/")
        (buffers (mapcar (lambda (process)
                           (cons (process-id process) (process-buffer process)))
                         (seq-filter #'process-tty-name (process-list))))
        found)
    ;; In macOS, process 0 is its own parent.
    (while (and buffers pid (< 0 pid) (not (buffer-live-p found)))
      (setq found (alist-get pid buffers)
            pid (alist-get 'ppid (process-attributes pid))))
    found))

(provide 'gemini-companion-session)
;;; gemini-companion-session.el ends here
