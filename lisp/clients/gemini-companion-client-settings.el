;;; gemini-companion-client-settings.el --- Settings of the CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read and write the settings files of the CLIs, and find settings with which a
;; CLI does not connect or opens no reviews.

;;; Code:

(require 'gemini-companion-client)
(require 'gemini-companion-text)
(require 'gemini-companion-windows-at-once)
(require 'json)

(defun gemini-companion-client-settings-names (client)
  "Return the names of the settings files of CLIENT, of project and user.
Each is nil if CLIENT has none."
  (list (gemini-companion-client-project-settings client)
        (car (last (gemini-companion-client-user-settings client)))))

(defun gemini-companion-client-settings-files (client directory)
  "Return the settings files of CLIENT in DIRECTORY; earlier files win.
They are the settings of the system, the project and the user."
  (let* ((name (gemini-companion-client-project-settings client))
         (root (when (and name (not (file-remote-p directory)))
                 (locate-dominating-file directory name))))
    (delq nil (list (gemini-companion-client-file
                     (gemini-companion-client-system-settings client))
                    (and root (expand-file-name name root))
                    (gemini-companion-client-user-file client)))))

(defun gemini-companion-client-settings--read (file &optional plain)
  "Return the JSON object in FILE as an alist, whose keys are strings.
FILE may have comments unless PLAIN is non-nil.  Return nil if there is
no FILE or nothing in it; signal an error if it is malformed, or not a
regular file, which a project may have there."
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
        (prog1 (gemini-companion-client-settings--last-values (json-read))
          (skip-chars-forward " \t\r\n")
          (unless (eobp)
            (error "Text after the JSON object")))))))

(defun gemini-companion-client-settings--last-values (value)
  "Return VALUE, read from JSON, with one value of each key.
A key that is there twice has its last value, as in a CLI."
  (cond ((vectorp value)
         (vconcat (mapcar #'gemini-companion-client-settings--last-values value)))
        ((consp value)
         (let ((object nil))
           (pcase-dolist (`(,key . ,one) value (nreverse object))
             (setf (alist-get key object nil nil #'equal)
                   (gemini-companion-client-settings--last-values one)))))
        (t value)))

(defun gemini-companion-client-settings-get (files keys)
  "Return the first value of FILES, a file or a list, for KEYS, or nil.
KEYS is a list of strings; without any, the value is all that a file
has.  Ignore errors."
  (seq-some (lambda (file)
              (let ((value (ignore-errors
                             (gemini-companion-client-settings--read file))))
                (dolist (key keys value)
                  (setq value (and (consp value) (cdr (assoc key value)))))))
            (ensure-list files)))

(defun gemini-companion-client-settings--set (file keys value saved)
  "Set KEYS, a list of two strings, to VALUE in FILE, and display SAVED.
If FILE cannot be written, report that instead.  If something in it
would be lost, visit it for the user, and return nil.  Signal an error if it is
malformed."
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
         (message "Setting not saved (%s); set %s to %s where that file is made"
                  (error-message-string problem) (string-join keys ".")
                  (json-encode value)))))
     (t
      (gemini-companion-client-settings--open file)
      (message "%s %s; set %s to %s in it, save it, and go back"
               (file-name-nondirectory file) reason (string-join keys ".")
               (json-encode value))
      nil))))

(defun gemini-companion-client-settings--unwritable (file)
  "Return why FILE cannot be written again without a loss, or nil."
  (condition-case nil
      (and (gemini-companion-client-settings--infinite-p
            (gemini-companion-client-settings--read file 'plain))
           "has a number that Emacs cannot write")
    ;; A comment is an error of the syntax.
    ((error) "has comments, which would be lost")))

(defun gemini-companion-client-settings--infinite-p (value)
  "Return non-nil if VALUE, read from JSON, has a number such as 1E400."
  (cond ((floatp value) (or (isnan value) (= 1.0e+INF (abs value))))
        ((vectorp value)
         (seq-some #'gemini-companion-client-settings--infinite-p value))
        ((consp value)
         (seq-some (lambda (pair)
                     (gemini-companion-client-settings--infinite-p (cdr pair)))
                   value))))

(defun gemini-companion-client-settings--write (file object)
  "Write OBJECT, an alist whose keys are strings, as JSON to FILE.
Make its directory if necessary.  Signal a `file-error' if that fails.  The
file is replaced in one step, and keeps its modes; where its directory cannot be
written, it is written in place."
  (let* ((coding-system-for-write 'utf-8-unix)
         (json-encoding-pretty-print t)
         (json-false :false)
         (json-null :null)
         (text (concat (json-encode object) "\n")))
    (make-directory (file-name-directory file) t)
    (let* ((file (file-truename file)) ; it may be a link to where all settings are
           (directory (file-name-directory file))
           (draft (and (file-writable-p directory)
                       ;; A file that may not be written must not be replaced.
                       (file-writable-p file)
                       (make-temp-name (concat file ".")))))
      (if (null draft)
          (write-region text nil file nil 'silent)
        (unwind-protect
            (progn
              ;; Settings may have keys of the user for a model.
              (with-file-modes (or (file-modes file) #o600)
                (write-region text nil draft nil 'silent nil 'excl))
              (when (file-exists-p file)
                (set-file-extended-attributes
                 draft (file-extended-attributes file))
                (set-file-modes draft (file-modes file)))
              (rename-file draft file t))
          (when (file-exists-p draft)
            (delete-file draft)))))))

(defun gemini-companion-client-settings--open (file)
  "Visit FILE in another window."
  ;; Visiting may ask a question, which is not visible inside one step of windows.
  (let ((buffer (find-file-noselect file)))
    (gemini-companion-windows-at-once
      (switch-to-buffer-other-window buffer))))

(defun gemini-companion-client-settings-untrusted-p (client directory default)
  "Return non-nil if CLIENT, with folder trust, does not trust DIRECTORY.
DEFAULT is whether folder trust is on where no setting decides that.  This
is a method of Gemini CLI and its forks for
`gemini-companion-client-untrusted-p'."
  (and (eq t (or (gemini-companion-client-settings-get
                  (gemini-companion-client-settings-files client directory)
                  '("security" "folderTrust" "enabled"))
                 default))
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
The first one is about what is needed to connect, if they can be read.
RUNS-P is called with CLIENT when a setting was saved: if its value is
non-nil, a message names what a running CLI needs.  A CLI that starts
after that reads the setting itself."
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
       `((bad ,(format "%s is malformed: %s" (abbreviate-file-name file)
                       (error-message-string problem))
              ,(format "Correct it; %s does not start with this file."
                       (gemini-companion-client-title client))
              ("Open" . ,(apply-partially #'gemini-companion-client-settings--open file))))))))

(defun gemini-companion-client-settings-meet (files required)
  "Return non-nil if the settings in FILES have what is REQUIRED.
REQUIRED is one of `gemini-companion-client-required-settings'.  The value is
`alternative' if they have only its alternative."
  (pcase-let* ((`(,keys ,value ,_ ,_ ,alternative) required)
               (found (gemini-companion-client-settings-get files keys)))
    (cond ((equal value found) t)
          ((and (member found (car alternative))
                (gemini-companion-client-settings-has-alternative-p files required))
           'alternative))))

(defun gemini-companion-client-settings-has-alternative-p (files required)
  "Return non-nil if the list in the alternative of REQUIRED has its element.
FILES and REQUIRED are as in `gemini-companion-client-settings-meet'."
  (pcase-let ((`(,_ ,list-keys ,element) (nth 4 required)))
    (seq-some (lambda (file)
                (seq-contains-p
                 (gemini-companion-client-settings--list file list-keys)
                 element))
              files)))

(defun gemini-companion-client-settings--list (file keys)
  "Return the value of KEYS in FILE if it is a list, a vector, else []."
  (let ((value (gemini-companion-client-settings-get file keys)))
    (if (vectorp value) value [])))

(defun gemini-companion-client-settings--alternative (client files runs-p required)
  "Return the remedy and the button of the alternative in REQUIRED, a list.
It is nil if there is none that helps.  For CLIENT, FILES and RUNS-P, see
`gemini-companion-client-settings--finding'."
  (pcase-let* ((`(,keys . ,_) required)
               (`(,values ,list-keys ,element ,label) (nth 4 required))
               (user (car (last files))))
    (when (and label
               (member (gemini-companion-client-settings-get files keys) values))
      (list
       (format "In mode %s, %s in %s is enough." (car (remq nil values))
               (json-encode element) (string-join list-keys "."))
       (cons label
             (lambda ()
               (gemini-companion-client-settings--set
                user list-keys
                (vconcat (gemini-companion-client-settings--list user list-keys)
                         (vector element))
                (if (funcall runs-p client)
                    (format "Setting saved; start a running %s again"
                            (gemini-companion-client-title client))
                  "Setting saved"))))))))

(defun gemini-companion-client-settings--finding (client files runs-p required)
  "Return the finding about a setting of CLIENT in FILES.
REQUIRED is one of `gemini-companion-client-required-settings'.  The last one of
FILES is the user's own.  RUNS-P is called with CLIENT, and returns
non-nil if it runs.  For the value, see `gemini-companion-status-checks'."
  (pcase-let* ((`(,keys ,value ,problem ,command ,alternative) required)
               (`(,remedy . ,buttons)
                (gemini-companion-client-settings--alternative
                 client files runs-p required))
               (user (car (last files)))
               (found (seq-find (lambda (file)
                                  (gemini-companion-client-settings-get file keys))
                                files))
               (file (or found user))
               (key (format "%s in %s" (string-join keys ".")
                            (abbreviate-file-name file))))
    (cond
     ((eq 'alternative (gemini-companion-client-settings-meet files required))
      `(good ,(format "%s has %s, for reviews in mode %s"
                      (string-join (nth 1 alternative) ".")
                      (json-encode (nth 2 alternative))
                      (car (remq nil (nth 0 alternative))))))
     ((gemini-companion-client-settings-meet files required)
      `(good ,(format "%s is %s" key (json-encode value))))
     ((equal file user)
      `(bad ,problem
            ,(concat (format "Run %s there, or set %s to %s." command key
                             (json-encode value))
                     (and remedy (concat "  " remedy)))
            (,(cond ((eq value t) "Enable")
                    (found "Change it")
                    (t "Set it"))
             . ,(lambda ()
                  (gemini-companion-client-settings--set
                   file keys value
                   (if (funcall runs-p client)
                       (format "Setting saved; a running %s needs %s"
                               (gemini-companion-client-title client) command)
                     "Setting saved"))))
            ,@buttons))
     (t
      `(bad ,problem
            ,(format "Remove %s, which overrides your own settings." key)
            ("Open" . ,(apply-partially #'gemini-companion-client-settings--open file)))))))

(provide 'gemini-companion-client-settings)
;;; gemini-companion-client-settings.el ends here
