;;; gemini-companion-name.el --- File names as the user sees them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The name by which a file is shown in header lines, the list and messages:
;; where a text would really be written, relative to the project of the CLI,
;; with invisible characters escaped.

;;; Code:

(require 'gemini-companion-place)
(require 'gemini-companion-roots)
(require 'gemini-companion-text)

;;;; Text

(defun gemini-companion-name-escaped (text)
  "Return TEXT with invisible characters escaped.
These are control and format characters, including bidirectional
ones, and blanks other than a space."
  (replace-regexp-in-string
   "[^ -~]"
   (lambda (match)
     (let ((char (aref match 0)))
       (cond ((< #x3FFF7F char) (format "\\x%02X" (- char #x3FFF00)))
             ((memq (get-char-code-property char 'general-category)
                    '(nil Cc Cf Cn Co Cs Zl Zp Zs))
              (format "\\u%04X" char))
             (t match))))
   text t t))

;;;; Places

(defun gemini-companion-name-place (file &optional session)
  "Return a list of the true name of FILE, a root, and OWN.
The root is the outermost one that contains FILE, or nil.  Roots of
the CLI of SESSION come first, and OWN is non-nil if it is one of
them.  The true name is FILE itself if its links are a loop, or if
Emacs takes it for a remote name."
  (let* ((file (let ((file-name-handler-alist nil))
                 (expand-file-name file)))
         (name (or (and (not (gemini-companion-text-remote-p file))
                        (gemini-companion-text-true-name file))
                   file)))
    (cons name (gemini-companion-name--root name session))))

(defun gemini-companion-name--root (name session)
  "Return a list of the root of NAME, and non-nil if it is SESSION's."
  (let* ((directory (plist-get session :directory))
         (outermost (lambda (roots)
                      (car (seq-sort-by #'length #'<
                                        (gemini-companion-roots-above
                                         name roots)))))
         (place (plist-get session :place))
         (own (cond (place
                     (funcall outermost (gemini-companion-place-roots place)))
                    (directory
                     (funcall outermost
                              (gemini-companion-roots-of directory))))))
    (list (or own (funcall outermost (gemini-companion-roots-all)))
          own)))

(defun gemini-companion-name (file &optional session plain)
  "Return a name of FILE to show to the user.
It is its true name, relative to the root in which the CLI of
SESSION runs or, without SESSION, to any root.  Unless PLAIN is
non-nil, it includes that FILE is outside all roots, or a symbolic
link to somewhere else.  Invisible characters are escaped, and a long
name is shortened in its middle."
  (pcase-let* ((`(,true-name ,root ,own)
                (gemini-companion-name-place file session))
               (name (gemini-companion-name--below
                      true-name (and (or own (null session)) root)))
               (place (car (gemini-companion-place-of true-name)))
               (shown (concat
                       ;; An absolute name has its place.
                       (and place (not (string-prefix-p "/" name))
                            (concat (gemini-companion-place-title place) ":"))
                       (gemini-companion-name-shown name)))
               (link (unless (or plain
                                 (gemini-companion-text-same-file-p
                                  true-name file)
                                 (string-suffix-p (concat "/" name) file))
                       (gemini-companion-name--below
                        file (car (gemini-companion-name--root
                                   file session))))))
    (unless (or plain (and root (not link)))
      ;; Where there is little room, only that is shortened.
      (setq shown (concat (unless root "a file outside your projects: ")
                          (propertize shown 'gemini-companion-path t)
                          (and link (format " (by the symbolic link %s)"
                                            (gemini-companion-name-shown
                                             link)))))
      (add-face-text-property 0 (length shown) (if root 'warning 'error)
                              nil shown))
    shown))

(defun gemini-companion-name--below (file root)
  "Return the name of FILE relative to ROOT, or an absolute one."
  (if (and root (gemini-companion-text-in-directory-p file root))
      (substring file (length (file-name-as-directory root)))
    (let ((file-name-handler-alist nil))
      (abbreviate-file-name (gemini-companion-place-file file)))))

(defun gemini-companion-name-shown (name &optional columns)
  "Return NAME, escaped and shortened in the middle to COLUMNS, or to 60."
  (let* ((name (gemini-companion-name-escaped name))
         (width (string-width name))
         (most (or columns 60))
         (head (/ most 3)))
    (if (<= width most)
        name
      (concat (truncate-string-to-width name head)
              "..."
              (truncate-string-to-width name width
                                        (- width (- most head 3)))))))

;;;; Lines

(defconst gemini-companion-name--least 20
  "Columns of a name that are more important than keys.")

(defun gemini-companion-name-fit (parts width)
  "Return as many of PARTS as fit into WIDTH columns, in their order.
PARTS are lists of a rank and a text; parts of the highest rank are
omitted first, and parts of rank 0 never.  One of them is a name: its
rank is nil, and it is shortened only if all others that remain have
rank 2 or less."
  (let* ((name (assq nil parts))
         (others (remq name parts))
         (columns (string-width (cadr name)))
         (room (lambda ()
                 (- width (string-width (mapconcat #'cadr others "")))))
         (least (lambda ()
                  (if (seq-every-p (lambda (part) (<= (car part) 2)) others)
                      (min columns gemini-companion-name--least)
                    columns))))
    (while (and (< (funcall room) (funcall least))
                (seq-some (lambda (part) (< 0 (car part))) others))
      (setq others (remq (car (last (seq-sort-by #'car #'< others))) others)))
    (mapconcat (lambda (part)
                 (cond ((eq part name)
                        (gemini-companion-name--shortened
                         (cadr name) (max 4 (funcall room))))
                       ((memq part others) (cadr part))))
               parts "")))

(defun gemini-companion-name--shortened (name columns)
  "Return NAME, shortened to COLUMNS.
Of a name with a warning, only the path is shortened."
  (if-let* ((beg (text-property-any 0 (length name)
                                    'gemini-companion-path t name)))
      (let* ((end (next-single-property-change beg 'gemini-companion-path
                                               name (length name)))
             (path (substring name beg end))
             (others (- (string-width name) (string-width path))))
        (concat (substring name 0 beg)
                (gemini-companion-name-shown path
                                             (max gemini-companion-name--least
                                                  (- columns others)))
                (substring name end)))
    (gemini-companion-name-shown name columns)))

(provide 'gemini-companion-name)
;;; gemini-companion-name.el ends here
