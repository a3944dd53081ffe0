;;; gemini-companion-settings.el --- Settings files of the CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read the settings files of the CLIs, which are JSON with comments, and set
;; what a CLI needs in that of the user.  A file with comments, which would be
;; lost, is opened for the user instead.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-text)
(require 'json)
(require 'seq)
(require 'subr-x)

;;;; Files

(defun gemini-companion-settings-files (client directory &optional environment)
  "Return the settings files of CLIENT in DIRECTORY; earlier files win.
They are those of the system, of the project and of the user.
ENVIRONMENT is as in `gemini-companion-clients-file'."
  (let* ((name (gemini-companion-clients-get client :project-settings))
         (root (unless (file-remote-p directory)
                 (locate-dominating-file directory name))))
    `(,(gemini-companion-clients-file client :system-settings environment)
      ,@(and root (list (expand-file-name name root)))
      ,(gemini-companion-clients-file client :user-settings environment))))

;;;; Reading

(defun gemini-companion-settings--strip-comments ()
  "Delete the comments in the current buffer of JSON; return non-nil if any.
Signal an error if a comma ends an object or array, which `json-read'
accepts, and no CLI does.  Go to the beginning."
  (let ((found nil))
    (goto-char (point-min))
    (while (re-search-forward
            (rx (or (seq "\""
                         (* (or (not (any "\"\\\n")) (seq "\\" nonl)))
                         "\"")
                    (group (or (seq "//" (* nonl))
                               (seq "/*" (*? anything) "*/")))
                    (group (any "]}"))))
            nil t)
      (cond ((match-beginning 1)
             (replace-match " " t t)
             (setq found t))
            ((and (match-beginning 2)
                  (save-excursion
                    (goto-char (match-beginning 2))
                    (skip-chars-backward " \t\r\n")
                    (eq ?, (char-before))))
             (error "Comma before a closing bracket"))))
    (goto-char (point-min))
    found))

(defun gemini-companion-settings-read (file)
  "Return the JSON object in FILE, which may have comments, as an alist.
Its keys are strings.  Return nil if there is no FILE or nothing in
it; signal an error if it is malformed, or not a regular file, which
a project may have there."
  (when-let* ((problem (gemini-companion-text-problem file)))
    (error "File %s" problem))
  (with-temp-buffer
    (when (file-exists-p file)
      (let ((coding-system-for-read 'utf-8))
        (insert-file-contents file)))
    (gemini-companion-settings--strip-comments)
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

(defun gemini-companion-settings-get (file keys)
  "Return what FILE has for KEYS, a list of strings, or nil.
Without KEYS, return all that it has.  Ignore errors."
  (let ((value (ignore-errors (gemini-companion-settings-read file))))
    (dolist (key keys value)
      (setq value (and (consp value) (cdr (assoc key value)))))))

(defun gemini-companion-settings-find (files keys)
  "Return the first one of FILES with a value for KEYS, or nil."
  (seq-find (lambda (file) (gemini-companion-settings-get file keys)) files))

(defun gemini-companion-settings-value
    (client directory keys &optional environment)
  "Return what the settings of CLIENT in DIRECTORY have for KEYS, or nil.
ENVIRONMENT is as in `gemini-companion-clients-file'."
  (seq-some (lambda (file) (gemini-companion-settings-get file keys))
            (gemini-companion-settings-files client directory environment)))

(defun gemini-companion-settings-missing
    (client directory &optional environment)
  "Return the elements of `:required' of CLIENT that its settings lack.
It runs in DIRECTORY; ENVIRONMENT is as in `gemini-companion-clients-file'."
  (seq-remove (pcase-lambda (`(,keys ,value . ,_))
                (equal value (gemini-companion-settings-value
                              client directory keys environment)))
              (gemini-companion-clients-get client :required)))

;;;; Writing

(defun gemini-companion-settings-set (file keys value)
  "Set KEYS, a list of two strings, to VALUE in FILE; return non-nil if so.
If FILE has comments, which would be lost, or its first key is no
object, open it for the user.  Signal an error if it is malformed or
has unsaved changes."
  (let ((buffer (find-buffer-visiting file))
        (object (gemini-companion-settings-read file)))
    (cond
     ((and buffer (buffer-modified-p buffer))
      (user-error "%s has unsaved changes; save them first"
                  (buffer-name buffer)))
     ((or (gemini-companion-settings--comments-p file)
          (not (listp (cdr (assoc (car keys) object)))))
      (gemini-companion-settings--edit file keys value)
      nil)
     (t
      (gemini-companion-settings--write
       file (gemini-companion-settings--with
             object (car keys)
             (gemini-companion-settings--with
              (cdr (assoc (car keys) object)) (cadr keys) value)))
      (when buffer
        (with-current-buffer buffer
          (revert-buffer t t t)))
      t))))

(defun gemini-companion-settings--comments-p (file)
  "Return non-nil if FILE has comments."
  (and (file-exists-p file)
       (with-temp-buffer
         (insert-file-contents file)
         (gemini-companion-settings--strip-comments))))

(defun gemini-companion-settings--with (object key value)
  "Return OBJECT, an alist, with VALUE for KEY, in its place or last."
  (if (assoc key object)
      (mapcar (lambda (member)
                (if (equal key (car member)) (cons key value) member))
              object)
    (append object (list (cons key value)))))

(defun gemini-companion-settings--write (file object)
  "Write OBJECT, an alist, to FILE as JSON, with the line ends that it has."
  (let ((json-encoding-pretty-print t)
        (json-false :false)
        (json-null :null)
        (coding-system-for-write 'utf-8-unix)
        ;; Users keep a link here to where all their settings are.
        (file (file-truename file)))
    (with-temp-buffer
      (when (file-exists-p file)
        (let ((coding-system-for-read 'utf-8))
          (insert-file-contents file))
        (setq coding-system-for-write last-coding-system-used))
      (make-directory (file-name-directory file) t)
      (write-region (concat (json-encode object) "\n") nil file nil 'silent))))

(defun gemini-companion-settings--edit (file keys value)
  "Visit FILE where KEYS belong, with a line for VALUE in the kill ring.
If it has another value, go there, with VALUE in the kill ring."
  (let ((old (gemini-companion-settings-get file keys))
        (text (json-encode value)))
    (find-file-other-window file)
    (goto-char (point-min))
    (let ((inside (gemini-companion-settings--search (car keys) "{")))
      (unless inside
        (search-forward "{" nil t))
      (setq old (and old inside
                     (gemini-companion-settings--search (cadr keys))))
      (unless old
        (setq text (format "%S: %s" (cadr keys) text))
        (unless inside
          (setq text (format "%S: {%s}" (car keys) text)))
        (unless (gemini-companion-settings--last-p)
          (setq text (concat text ","))))
      (kill-new text)
      (message (if old
                   "Cannot rewrite %s; replace the value here by %s, then save"
                 "Cannot rewrite %s; yank %s here, then save")
               (file-name-nondirectory file) text))))

(defun gemini-companion-settings--search (key &optional beginning)
  "Go to the value of KEY, or after its BEGINNING, and return non-nil.
Return nil if there is none after point."
  (re-search-forward (format "%S[ \t\r\n]*:[ \t\r\n]*%s" key
                             (or beginning ""))
                     nil t))

(defun gemini-companion-settings--last-p ()
  "Return non-nil if only comments are left before the end of the object."
  (let ((rest (buffer-substring (point) (point-max))))
    (with-temp-buffer
      (insert rest)
      (gemini-companion-settings--strip-comments)
      (looking-at-p "[ \t\r\n]*}"))))

(provide 'gemini-companion-settings)
;;; gemini-companion-settings.el ends here
