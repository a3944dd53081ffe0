;;; gemini-companion-text.el --- Texts of files and buffers  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Read and write texts without any conversion: no format is decoded, none of
;; the user's hooks and file name handlers is called, and line ends stay.
;; Compare them, and replace the text of a buffer.
;;
;; Decoding or encoding 10 MB of non-ASCII text takes Emacs 30 ms.  But a buffer
;; holds text in UTF-8 already, so switching it between bytes and characters
;; takes only 3 ms.

;;; Code:

(require 'subr-x)

(defconst gemini-companion-text--surrogate "\355[\240-\277]"
  "Regexp for bytes that are not UTF-8 but that Emacs would accept.")

(defun gemini-companion-text-true-name (file)
  "Return the true name of the local FILE, or nil if its links are a loop."
  (let ((file-name-handler-alist nil))
    (ignore-errors (file-truename file))))

(defun gemini-companion-text-attributes (file)
  "Return the attributes of the local FILE, or nil if it does not exist.
Follow symbolic links."
  (let ((file-name-handler-alist nil))
    (when-let* ((name (if (file-symlink-p file)
                          (gemini-companion-text-true-name file)
                        file)))
      (file-attributes name))))

(defun gemini-companion-text-remote-p (file)
  "Return non-nil if Emacs takes FILE, an absolute name, for a remote one.
A CLI takes it for a local one."
  (condition-case nil
      (file-remote-p file)
    ;; Tramp signals an error for an unknown method.
    (error t)))

(defun gemini-companion-text-problem (file)
  "Return why the text of FILE cannot be read, or nil if it can.
The value is the predicate of a sentence.  It is nil also if the
file does not exist.  Reading a pipe, a terminal, a device or a file
in /proc may never end."
  (if (gemini-companion-text-remote-p file)
      "has a remote file name"
    (let ((file-name-handler-alist nil))
      (cond ((null (gemini-companion-text-true-name file))
             "is a loop of symbolic links")
            ((and (file-exists-p file)
                  (or (not (file-regular-p file))
                      ;; Virtual files of the kernel have the size 0, and so
                      ;; have their file systems.
                      (and (eql 0 (file-attribute-size
                                   (gemini-companion-text-attributes file)))
                           (eql 0 (car (file-system-info file))))))
             "is not a regular file")))))

;;;; Comparison

(defun gemini-companion-text-lines (text)
  "Return the lines of TEXT."
  (and (not (string-empty-p text))
       (split-string (string-remove-suffix "\n" text) "\n")))

(defun gemini-companion-text-plain (text)
  "Return TEXT with plain line ends and no byte order mark."
  (string-remove-prefix "\uFEFF" (string-replace "\r\n" "\n" text)))

(defun gemini-companion-text-same-written-p (a b)
  "Return non-nil if the text A may be B as a CLI has written it.
A CLI keeps the line ends and the last newline of a file."
  (apply #'string= (mapcar (lambda (text)
                             (string-trim-right
                              (gemini-companion-text-plain text) "\n+"))
                           (list a b))))

(defun gemini-companion-text-diff3 (texts &rest options)
  "Compare TEXTS, a list of three, by the program diff3 with OPTIONS.
Return (STATUS . OUTPUT), or nil if there is no such program."
  (when (executable-find "diff3")
    (let ((files (mapcar #'gemini-companion-text-temporary-file texts))
          (coding-system-for-read 'utf-8-emacs-unix)
          (default-directory "/"))
      (unwind-protect
          (with-temp-buffer
            (cons (apply #'call-process "diff3" nil t nil "--text"
                         (append options files))
                  (buffer-string)))
        (mapc #'delete-file files)))))

;;;; Display

(defun gemini-companion-text-sign (char ascii)
  "Return CHAR as a string, or ASCII where it cannot be displayed."
  (if (char-displayable-p char) (string char) ascii))

;;;; Buffers

(defun gemini-companion-text-of-buffer (&optional buffer)
  "Return the whole text of BUFFER, or the current one, without properties."
  (with-current-buffer (or buffer (current-buffer))
    (save-restriction
      (widen)
      (buffer-substring-no-properties (point-min) (point-max)))))

(defun gemini-companion-text-size (buffer)
  "Return the size of the whole text of BUFFER in bytes."
  (with-current-buffer buffer
    (save-restriction
      (widen)
      (1- (position-bytes (point-max))))))

(defun gemini-companion-text-replace (text)
  "Make TEXT the text of the current buffer, in place."
  (let ((source (generate-new-buffer " *gemini text*")))
    (unwind-protect
        (save-restriction
          (widen)
          (with-current-buffer source (insert text))
          ;; Otherwise Emacs asks whether to edit a file that has changed.
          (let ((buffer-file-name nil))
            (replace-buffer-contents source 0.2)))
      (kill-buffer source))))

;;;; Names

(defun gemini-companion-text-same-file-p (a b)
  "Return non-nil if A and B, two local true names, are of one file.
On a volume that ignores case they may differ."
  (or (string= a b)
      (and (eq t (compare-strings a nil nil b nil nil t))
           (let ((file-name-handler-alist nil))
             (file-equal-p a b)))))

(defun gemini-companion-text-in-directory-p (file directory)
  "Return non-nil if FILE is in DIRECTORY or below; both are true names.
A name of a directory in place of FILE ends with a slash."
  (let ((directory (file-name-as-directory directory)))
    (and (string-prefix-p directory file t)
         (gemini-companion-text-same-file-p
          directory (substring file 0 (length directory))))))

;;;; Reading

(defun gemini-companion-text--insert-bytes (file)
  "Insert the bytes of the regular FILE, at most as many as its size."
  (let ((file-name-handler-alist nil)
        (attributes (gemini-companion-text-attributes file)))
    (unless (or (null attributes) (file-regular-p file))
      (signal 'file-error (list "Not a regular file" file)))
    (insert-file-contents-literally file nil 0
                                    (file-attribute-size attributes))))

(defun gemini-companion-text-fill (file)
  "Fill the current buffer, which is empty, with the text of FILE.
Decode it from UTF-8.  Return its size in bytes."
  (set-buffer-multibyte nil)
  (gemini-companion-text--insert-bytes file)
  (prog1 (buffer-size)
    (gemini-companion-text--decode)
    (goto-char (point-min))))

(defun gemini-companion-text--decode ()
  "Decode the bytes in the current buffer from UTF-8."
  (if (let ((case-fold-search nil))
        (re-search-forward gemini-companion-text--surrogate nil t))
      (let ((bytes (buffer-string)))
        (erase-buffer)
        (set-buffer-multibyte t)
        (insert (decode-coding-string bytes 'utf-8-unix)))
    (set-buffer-multibyte t)))

(defun gemini-companion-text-read (file)
  "Return the text of FILE, which is in UTF-8, as a string."
  (with-temp-buffer
    (gemini-companion-text-fill file)
    (buffer-string)))

(defun gemini-companion-text-bytes (file)
  "Return the bytes of FILE as a string."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (gemini-companion-text--insert-bytes file)
    (buffer-string)))

(defun gemini-companion-text-write (file &optional text exclusive)
  "Write TEXT, or the whole current buffer, to FILE as UTF-8.
Bytes that are not UTF-8 are written as they were read.  If EXCLUSIVE
is non-nil, signal an error if FILE exists."
  (let ((source (current-buffer)))
    (with-temp-buffer
      (if text
          (progn (insert text)
                 (set-buffer-multibyte nil))
        (let ((bytes (current-buffer)))
          (with-current-buffer source
            (save-restriction
              (widen)
              (gemini-companion-text--take-bytes bytes nil nil)))))
      (let ((coding-system-for-write 'no-conversion)
            (file-name-handler-alist nil)
            (write-region-annotate-functions nil)
            (write-region-post-annotation-function nil)
            (write-region-inhibit-fsync t)
            (inhibit-message t))
        (write-region nil nil file nil 'silent nil (and exclusive 'excl))))))

(defun gemini-companion-text-temporary-file (&optional text)
  "Write TEXT, or the whole current buffer, to a new file; return its name.
Only the user can read it."
  (let ((file (make-temp-file "gemini-companion-")))
    (gemini-companion-text-write file text)
    file))

(defun gemini-companion-text-as-bytes (function)
  "Call FUNCTION; meanwhile, write text as UTF-8 without encoding it.
FUNCTION must write with the coding system `no-conversion'."
  (let ((here (current-buffer)))
    (with-temp-buffer
      (let* ((bytes (current-buffer))
             (write-region-inhibit-fsync t)
             (write-region-post-annotation-function nil)
             ;; `write-region' writes the buffer that they leave current.
             (write-region-annotate-functions
              (list (lambda (start end)
                      (gemini-companion-text--take-bytes bytes start end)))))
        (with-current-buffer here
          (funcall function))))))

(defun gemini-companion-text--take-bytes (bytes start end)
  "Copy the text from START to END into the buffer BYTES, as bytes.
Copy all accessible text if they are nil.  Make BYTES current."
  (let ((source (current-buffer)))
    (set-buffer bytes)
    (erase-buffer)
    (set-buffer-multibyte t)
    (insert-buffer-substring source start end)
    (set-buffer-multibyte nil)
    nil))

(provide 'gemini-companion-text)
;;; gemini-companion-text.el ends here
