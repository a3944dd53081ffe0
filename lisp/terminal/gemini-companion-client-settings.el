;;; gemini-companion-client-settings.el --- Settings of the CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read and write the settings files of the CLIs, and find settings that prevent a
;; CLI from connecting or from opening reviews.

;;; Code:

(require 'gemini-companion-client)
(require 'gemini-companion-names)
(require 'gemini-companion-text)
(require 'json)

;;;; Files

(defun gemini-companion-client-settings-names (client)
  "Return the names of the settings files of CLIENT, a list (PROJECT USER).
A name is nil if CLIENT has no such file."
  (list (gemini-companion-client-project-settings client)
        (car (last (gemini-companion-client-user-settings client)))))

(defun gemini-companion-client-settings-files (client directory)
  "Return the settings files of CLIENT in DIRECTORY, in order of precedence.
They are the files of the system, of the project and of the user."
  (let* ((name (gemini-companion-client-project-settings client))
         (root (when (and name (not (file-remote-p directory)))
                 (locate-dominating-file directory name))))
    (delq nil (list (gemini-companion-client-file
                     (gemini-companion-client-system-settings client))
                    (and root (gemini-companion-names-below root name))
                    (gemini-companion-client-user-file client)))))

(defun gemini-companion-client-settings--read (file &optional plain)
  "Return the JSON object in FILE as an alist, whose keys are strings.
FILE may have comments unless PLAIN is non-nil.  Return nil if FILE does not
exist or is empty.  Signal an error if FILE is malformed, or is not a regular
file, as a malicious project may have."
  (when-let* ((problem (gemini-companion-text-unreadable-reason file)))
    (error "File %s" problem))
  (with-temp-buffer
    (when (file-exists-p file)
      (let ((coding-system-for-read 'utf-8))
        (insert-file-contents file)))
    (unless plain
      (save-excursion
        (while (re-search-forward
                (rx (or (seq "\""
                             (* (or (not (any "\"\\\n")) (seq "\\" nonl)))
                             "\"")
                        (group (or (seq "//" (* nonl))
                                   (seq "/*" (*? anything) "*/")))))
                nil t)
          (when (match-beginning 1)
            (replace-match " " t t)))))
    (skip-chars-forward " \t\r\n")
    (unless (eobp)
      (unless (eq (char-after) ?\{)
        (error "Not a JSON object"))
      (let ((json-object-type 'alist)
            (json-key-type 'string)
            (json-array-type 'vector)
            (json-false :false)
            ;; Distinct from an empty object.
            (json-null :null))
        (prog1 (json-read)
          (skip-chars-forward " \t\r\n")
          (unless (eobp)
            (error "Text after the JSON object")))))))

(defun gemini-companion-client-settings-get (files keys)
  "Return the value of KEYS in the first of FILES that has one, or nil.
FILES is a file or a list of files.  KEYS is a list of strings, a path into
the JSON object; if it is nil, return the whole object.  Ignore errors."
  (seq-some (lambda (file)
              (let ((value (ignore-errors
                             (gemini-companion-client-settings--read file))))
                (dolist (key keys value)
                  (setq value (and (consp value) (cdr (assoc key value)))))))
            (ensure-list files)))

(defun gemini-companion-client-settings--set (file keys value saved)
  "Set KEYS, a list of two strings, to VALUE in FILE, and display SAVED.
If FILE cannot be written, report that instead.  If writing would lose
something in FILE, visit it for the user, and return nil.  Signal an error if
FILE is malformed."
  (let* ((object (gemini-companion-client-settings--read file))
         (section (pcase (cdr (assoc (car keys) object))
                    (:null nil)
                    (section section)))
         (reason (if (listp section)
                     (gemini-companion-client-settings--unwritable file)
                   (format "has no object as %s" (car keys)))))
    (cond
     ((null reason)
      (setf (alist-get (cadr keys) section nil nil #'equal) value
            (alist-get (car keys) object nil nil #'equal) section)
      (condition-case problem
          (progn
            (gemini-companion-client-settings--write file object)
            (message "%s" saved))
        (file-error
         (message "Setting not saved (%s); set %s to %s where that file is created"
                  (error-message-string problem) (string-join keys ".")
                  (json-encode value)))))
     (t
      (find-file-other-window file)
      (message "%s %s; set %s to %s in it, save it, and go back"
               (file-name-nondirectory file) reason (string-join keys ".")
               (json-encode value))
      nil))))

(defun gemini-companion-client-settings--unwritable (file)
  "Return the reason why rewriting FILE would lose something, or nil.
The value is a verb phrase."
  (condition-case nil
      (let ((case-fold-search nil))
        ;; For example 1E400.
        (and (string-match-p "e\\+INF" (json-encode
                                       (gemini-companion-client-settings--read
                                        file 'plain)))
             "has a number that Emacs cannot write"))
    ;; A comment is a syntax error in plain JSON.
    ((error) "has comments, which would be lost")))

(defun gemini-companion-client-settings--write (file object)
  "Write OBJECT, an alist whose keys are strings, as JSON to FILE.
Create its directory if necessary.  Replace FILE atomically, and preserve its
modes; if its directory is not writable, write FILE in place.  Signal a
`file-error' on failure."
  (let* ((coding-system-for-write 'utf-8-unix)
         (json-encoding-pretty-print t)
         (json-false :false)
         (json-null :null)
         (text (concat (json-encode object) "\n")))
    (make-directory (file-name-directory file) t)
    (let* ((file (file-truename file)) ; do not replace a link to a shared file
           (directory (file-name-directory file))
           (draft (and (file-writable-p directory)
                       ;; Do not replace a read-only file.
                       (file-writable-p file)
                       (make-temp-name (concat file ".")))))
      (if (null draft)
          (write-region text nil file nil 'silent)
        (unwind-protect
            (progn
              ;; Settings may contain API keys.
              (with-file-modes (or (file-modes file) #o600)
                (write-region text nil draft nil 'silent nil 'excl))
              (when (file-exists-p file)
                (set-file-extended-attributes
                 draft (file-extended-attributes file))
                (set-file-modes draft (file-modes file)))
              (rename-file draft file t))
          (when (file-exists-p draft)
            (delete-file draft)))))))

;;;; Images

(defun gemini-companion-client-settings-images (client directory)
  "Return the directory of images that were pasted into CLIENT in DIRECTORY.
The value is an absolute name, or nil if it is not known."
  (when-let* ((home (gemini-companion-client-home client))
              (images (gemini-companion-client-image-directory client))
              (project
               (pcase (gemini-companion-client-project-names client)
                 (`(,file ,key)
                  (gemini-companion-client-settings-get
                   (gemini-companion-names-below home file)
                   (list key (directory-file-name (file-truename directory)))))
                 (_ ""))))
    (gemini-companion-names-below home (format images project))))

;;;; Findings

(defun gemini-companion-client-settings-untrusted-p (client directory)
  "Return non-nil if CLIENT does not trust DIRECTORY, a local directory."
  (and (gemini-companion-client-folder-trust client)
       (eq t (or (gemini-companion-client-settings-get
                  (gemini-companion-client-settings-files client directory)
                  '("security" "folderTrust" "enabled"))
                 (eq 'on (gemini-companion-client-folder-trust client))))
       (not (seq-some
             (pcase-lambda (`(,name . ,trust))
               (pcase trust
                 ("TRUST_FOLDER"
                  (file-in-directory-p directory name))
                 ("TRUST_PARENT"
                  (file-in-directory-p directory (file-name-directory name)))))
             (gemini-companion-client-settings-get
              (expand-file-name "trustedFolders.json"
                                (gemini-companion-client-home client))
              nil)))))

(defun gemini-companion-client-settings-findings (client directory &optional runs-p)
  "Return the findings about the settings of CLIENT in DIRECTORY.
The first one is about the setting to connect, unless a file is malformed.
RUNS-P is a function that returns non-nil if CLIENT, its argument, is running:
after a setting was saved, a message then names the command for the running
CLI, since a CLI reads its settings when it starts."
  (when-let* ((required (gemini-companion-client-required-settings client))
              (files (gemini-companion-client-settings-files client directory))
              (file (car (last files))))
    (condition-case problem
        (progn
          (gemini-companion-client-settings--read file)
          (mapcar (apply-partially #'gemini-companion-client-settings--finding
                                   client files (or runs-p #'ignore))
                  required))
      (error
       `((bad ,(format "%s is malformed: %s" (gemini-companion-names-absolute file)
                       (error-message-string problem))
              ,(format "Correct it; %s does not start with this file."
                       (gemini-companion-client-title client))
              ("Open" . ,(apply-partially #'find-file-other-window file))))))))

(defun gemini-companion-client-settings-meet (files required)
  "Return non-nil if the settings in FILES meet REQUIRED.
REQUIRED is one of `gemini-companion-client-required-settings'."
  (pcase-let ((`(,keys ,value . ,_) required))
    (equal value (gemini-companion-client-settings-get files keys))))

(defun gemini-companion-client-settings--finding (client files runs-p required)
  "Return the finding about a setting of CLIENT in FILES.
REQUIRED is one of `gemini-companion-client-required-settings'.  The last one
of FILES is the user's file.  For RUNS-P, see
`gemini-companion-client-settings-findings'; for the value, see
`gemini-companion-status-checks'."
  (pcase-let* ((`(,keys ,value ,problem ,command) required)
               (user (car (last files)))
               (deciding-file (seq-find
                               (lambda (file)
                                 (gemini-companion-client-settings-get file keys))
                               files))
               (file (or deciding-file user))
               (key (format "%s in %s" (string-join keys ".")
                            (gemini-companion-names-absolute file))))
    (cond
     ((gemini-companion-client-settings-meet files required)
      `(good ,(format "%s is %s" key (json-encode value))))
     ((equal file user)
      `(bad ,problem
            ,(format "Run %s there, or set %s to %s." command key (json-encode value))
            (,(cond ((eq value t) "Enable")
                    (deciding-file "Change it")
                    (t "Set it"))
             . ,(lambda ()
                  (gemini-companion-client-settings--set
                   file keys value
                   (if (funcall runs-p client)
                       (format "Setting saved; a running %s needs %s"
                               (gemini-companion-client-title client) command)
                     "Setting saved"))))))
     (t
      `(bad ,problem
            ,(format "Remove %s, which overrides your settings." key)
            ("Open" . ,(apply-partially #'find-file-other-window file)))))))

(provide 'gemini-companion-client-settings)
;;; gemini-companion-client-settings.el ends here
