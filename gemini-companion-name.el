;;; gemini-companion-name.el --- File names as the user sees them  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; The name by which a file is shown: where a text would really be written, as
;; seen from the project of the CLI, with nothing hidden.  The header lines of
;; a review, the list and all messages take it from here.

;;; Code:

(require 'gemini-companion-roots)
(require 'gemini-companion-text)
(require 'seq)

(defconst gemini-companion-name--columns 60
  "Width above which a name is shortened in the middle.")

(defconst gemini-companion-name--invisible
  "[\u034F\u115F\u1160\u17B4\u17B5\u180B-\u180F\u3164\uFE00-\uFE0F\uFFA0]"
  "Matches characters that are no format characters, and show nothing.")

;;;; Text

(defun gemini-companion-name-escaped (text)
  "Return TEXT with each character in it that would not be seen escaped.
Control and format characters are, the bidirectional ones among
them, and blanks other than a space."
  (replace-regexp-in-string
   "[^ -~]"
   (lambda (match)
     (let ((char (aref match 0)))
       (cond ((< #x3FFF7F char) (format "\\x%02X" (- char #x3FFF00)))
             ((gemini-companion-name--invisible-p char) (format "\\u%04X" char))
             (t match))))
   text t t))

(defun gemini-companion-name--invisible-p (char)
  "Return non-nil if CHAR is invisible, or affects other characters."
  (or (memq (get-char-code-property char 'general-category)
            '(nil Cc Cf Cn Co Cs Zl Zp Zs))
      (string-match-p gemini-companion-name--invisible (string char))
      (<= #xE0100 char #xE01EF)))

(defun gemini-companion-name--shortened (name)
  "Return NAME, without its middle if it is too long."
  (let* ((width (string-width name))
         (most gemini-companion-name--columns)
         (head (/ most 3)))
    (if (<= width most)
        name
      (concat (truncate-string-to-width name head)
              "..."
              (truncate-string-to-width name width
                                        (- width (- most head 3)))))))

;;;; Places

(defun gemini-companion-name-place (file &optional session)
  "Return where FILE is, a list of its true name, a root, and OWN.
The root is the outermost one in which it is, nil if there is none.
OWN is non-nil if that is one of the CLI of SESSION; other roots of
this Emacs count after those.  The true name is FILE if its links
are a loop, or Emacs takes it for a remote name."
  (let* ((file (gemini-companion-name--expanded file))
         (name (or (and (not (gemini-companion-text-remote-p file))
                        (gemini-companion-text-true-name file))
                   file)))
    (cons name (gemini-companion-name--root name session))))

(defun gemini-companion-name--root (name session)
  "Return a list of the root in which NAME is, and whether it is SESSION's."
  (let* ((directory (plist-get session :directory))
         (own (gemini-companion-name--outermost
               name (and directory (gemini-companion-roots-of directory)))))
    (list (or own (gemini-companion-name--outermost
                   name (gemini-companion-roots-last)))
          (and own t))))

(defun gemini-companion-name--outermost (name roots)
  "Return the outermost of ROOTS in which the file NAME is, or nil."
  (car (seq-sort-by #'length #'<
                    (seq-filter (lambda (root)
                                  (gemini-companion-roots-in-p name root))
                                roots))))

(defun gemini-companion-name--expanded (file)
  "Return FILE, an absolute name, without dots and doubled slashes."
  (let ((file-name-handler-alist nil))
    (expand-file-name file)))

(defun gemini-companion-name (file &optional session plain)
  "Return a name of FILE for the user, whatever may be in it.
That is its true name, relative to the root in which the CLI of
SESSION runs; without SESSION, to any root.  If FILE is outside all
roots, or a symbolic link that leads elsewhere, the name says so,
unless PLAIN is non-nil."
  (pcase-let* ((file (gemini-companion-name--expanded file))
               (`(,true-name ,root ,own)
                (gemini-companion-name-place file session))
               (name (gemini-companion-name--below
                      true-name (and (or own (null session)) root)))
               (shown (gemini-companion-name--shown name))
               (link (unless (or plain
                                 (equal true-name file)
                                 (string-suffix-p (concat "/" name) file))
                       (gemini-companion-name--below
                        file (car (gemini-companion-name--root
                                   file session))))))
    (when link
      (setq shown (format "%s (by the symbolic link %s)" shown
                          (gemini-companion-name--shown link))))
    (cond (plain shown)
          ((null root)
           (propertize (concat "a file outside your projects: " shown)
                       'face 'error))
          (link (propertize shown 'face 'warning))
          (t shown))))

(defun gemini-companion-name--below (file root)
  "Return the name of FILE relative to ROOT, or an absolute one."
  (if (and root (gemini-companion-roots-in-p file root))
      (substring file (length (file-name-as-directory root)))
    (let ((file-name-handler-alist nil))
      (abbreviate-file-name file))))

(defun gemini-companion-name--shown (name)
  "Return NAME as it is shown: escaped, and not too long."
  (gemini-companion-name--shortened (gemini-companion-name-escaped name)))

(provide 'gemini-companion-name)
;;; gemini-companion-name.el ends here
