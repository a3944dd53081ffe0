;;; gemini-companion-remote-names.el --- Names of files on other hosts  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The connected hosts, and the mapping between the names of remote files and the names
;; of their local copies.  The server updates the copy while a CLI wants to write the
;; file.  The methods are for the generic functions of `gemini-companion-names'.  This
;; file uses neither the server nor the network.

;;; Code:

(require 'gemini-companion-names)

;;;; Customization

(defgroup gemini-companion-remote nil
  "CLIs on other hosts and in containers."
  :group 'gemini-companion)

(defcustom gemini-companion-remote-directories nil
  "Remote hosts where CLIs may connect, an alist of (NAME . PAIRS).
NAME is the prefix of the names of files there, such as \"/ssh:host:\".
Commands that connect a host ask you first, and add the host.  Each of
PAIRS is a cons (THERE . HERE) for a directory that both hosts share,
such as the mount of a container: THERE is its name on the host, HERE
its local name, by which its files are edited."
  :type '(alist :key-type (string :tag "Name, such as /ssh:host:")
                :value-type (alist :key-type (string :tag "There")
                                   :value-type (directory :tag "Here")))
  :package-version '(gemini-companion . "0.1.0"))

;;;; State

(defvar gemini-companion-remote-names-hosts nil
  "Alist of (NAME . PLIST), the hosts that are or will be connected.
PLIST has the `:directories', from which the user wants to connect, the
`:state', \"connecting\", \"connected\", \"lost\" or \"ended\", and what the
server has reported: the `:problem', the `:port', the version of `:node',
the temporary directory `:tmp', and `:roots', lists (DIRECTORY ROOT).")

(defvar gemini-companion-remote-names-copies nil
  "Alist of (NAME . DIRECTORY), the directories of the copies of each host.
A disconnected host stays in the list, since its edits need the copies.")

;;;; Mapping

(defun gemini-companion-remote-names--mapped (file pairs)
  "Map the name of FILE by the first of PAIRS whose directory has or is FILE.
PAIRS are lists (FROM TO) of directories.  Return nil if none has FILE."
  (let ((file-name-handler-alist nil))
    (seq-some (pcase-lambda (`(,from ,to))
                (let ((directory (file-name-as-directory from)))
                  (cond ((string-prefix-p directory file)
                         (concat (file-name-as-directory to)
                                 (substring file (length directory))))
                        ((equal file (directory-file-name from))
                         (directory-file-name to)))))
              pairs)))

(defun gemini-companion-remote-names-shared (name)
  "Return the directories that the host NAME shares with this one.
The value is a list of (THERE HERE)."
  (mapcar (pcase-lambda (`(,there . ,here))
            (list there (expand-file-name here)))
          (cdr (assoc name gemini-companion-remote-directories))))

(cl-defmethod gemini-companion-names-copy ((file string))
  "Return the name of the copy of the remote FILE, or nil."
  (when-let* ((name (and gemini-companion-remote-names-hosts
                         (file-remote-p file)))
              (host (cdr (assoc name gemini-companion-remote-names-hosts))))
    (gemini-companion-remote-names--mapped
     (replace-regexp-in-string "\\`~/" (concat (plist-get host :home) "/")
                               (file-local-name file) t t)
     `(,@(gemini-companion-remote-names-shared name)
       ("/" ,(cdr (assoc name gemini-companion-remote-names-copies)))))))

(cl-defmethod gemini-companion-names-of-copy ((file string))
  "Return a cons of the host of the copy FILE and its name there, or nil."
  (seq-some (pcase-lambda (`(,name . ,directory))
              (when-let* ((there (gemini-companion-remote-names--mapped
                                  file `((,directory "/")))))
                (cons name there)))
            gemini-companion-remote-names-copies))

(cl-defmethod gemini-companion-names-copy-of-buffer ((buffer buffer))
  "Return the copy of the remote file that BUFFER visits, or nil."
  (when-let* ((file (and gemini-companion-remote-names-hosts
                         (buffer-file-name buffer)))
              (true-name (or (buffer-local-value 'buffer-file-truename buffer)
                             file)))
    ;; In Emacs 28, the true name lacks the hops.
    (gemini-companion-names-copy
     (concat (file-remote-p file) (file-local-name true-name)))))

(cl-defmethod gemini-companion-names-remote ((file string) host)
  "Return a cons of the host of FILE, or of a directory, and its name there.
FILE may be a copy, or be in a local directory that is shared with HOST, or
with any host if HOST is nil.  For any other local FILE, return nil."
  (if-let* ((file (gemini-companion-names-visited file))
            (name (file-remote-p file)))
      (cons name (directory-file-name (file-local-name file)))
    (seq-some (pcase-lambda (`(,name . ,_))
                (when-let* (((member host (list nil name)))
                            (shared (gemini-companion-remote-names-shared name))
                            (there (gemini-companion-remote-names--mapped
                                    (expand-file-name file)
                                    (mapcar #'reverse shared))))
                  (cons name (directory-file-name there))))
              gemini-companion-remote-directories)))

(cl-defmethod gemini-companion-names-remote-location ((directory string))
  "Return (HOST NAME ROOT) for DIRECTORY, or nil if it is local.
NAME is its name on HOST, and ROOT the workspace root there, nil if it is
unknown.  DIRECTORY may be a local one that is shared with a host."
  (pcase-let* ((`(,name . ,there) (gemini-companion-names-remote directory nil))
               (roots (plist-get (cdr (assoc name gemini-companion-remote-names-hosts))
                                 :roots)))
    (when name
      (list name there
            (or (cadr (assoc there roots))
                (seq-find (lambda (root)
                            (and root (string-prefix-p
                                       (file-name-as-directory root) there)))
                          (mapcar #'cadr roots)))))))

(defun gemini-companion-remote-names--roots (hosts)
  "Return the copies of the workspace roots of HOSTS.
HOSTS are elements of `gemini-companion-remote-names-hosts'."
  (cl-loop for (host . plist) in hosts
           append (cl-loop for (_ root) in (plist-get plist :roots)
                           when root collect (gemini-companion-names-copy
                                              (concat host root)))))

(cl-defmethod gemini-companion-names-roots ((host string))
  "Return the copies of the workspace roots of HOST."
  (gemini-companion-remote-names--roots
   (when-let* ((found (assoc host gemini-companion-remote-names-hosts)))
     (list found))))

(cl-defmethod gemini-companion-names-roots ((_host null))
  "Return the copies of the workspace roots of all hosts."
  (gemini-companion-remote-names--roots gemini-companion-remote-names-hosts))

(cl-defmethod gemini-companion-names-connected-p ((host string))
  "Return non-nil if HOST is, or will be, connected."
  (assoc host gemini-companion-remote-names-hosts))

(provide 'gemini-companion-remote-names)
;;; gemini-companion-remote-names.el ends here
