;;; gemini-companion-code.el --- Read source code  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Analyze texts of programs without knowledge of their language: find the errors that
;; are new after an edit, the names that an edit has changed, and the occurrences and
;; the definition of a symbol.  `errors' and `lookup' use this.

;;; Code:

(require 'gemini-companion-text)

;;;; New errors

(cl-defstruct (gemini-companion-code-located
               (:noinline t)
               (:constructor gemini-companion-code--locate (error kind content))
               (:copier nil))
  "An error of a checker and its line in the text.
ERROR is a list (LINE TEXT SOURCE), such as (12 \"undefined name\"
\"pyflakes\"); LINE begins at 1, and SOURCE is the checker or missing.
KIND is TEXT with its numbers replaced by 0, as they may be line numbers.
CONTENT is the text of the line."
  error kind content)

(defconst gemini-companion-code--masking
  (concat "syntax\\|expect\\|indent\\|clos\\|unterminated\\|unmatched\\|pars\\|"
          "separated\\|\\<EO[FL]\\>\\|not found\\|fatal\\|too many errors")
  "Regexp for errors that may mask others.")

(defun gemini-companion-code--located (errors text)
  "Return the ERRORS of a checker in TEXT, sorted by line.
The value is a list of `gemini-companion-code-located'."
  (with-temp-buffer
    (insert text)
    (goto-char (point-min))
    (let ((at 1))
      (mapcar
       (lambda (error)
         (forward-line (- (car error) at))
         (setq at (car error))
         (gemini-companion-code--locate
          error
          (replace-regexp-in-string "[0-9]+" "0" (nth 1 error))
          (buffer-substring-no-properties (point) (line-end-position))))
       (seq-sort-by #'car #'< errors)))))

(defun gemini-companion-code--key (located)
  "Return a key of LOCATED that does not change if the error has only moved.
The value is a cons (KIND . CONTENT); CONTENT has no indentation."
  (cons (gemini-companion-code-located-kind located)
        (gemini-companion-text-trim (gemini-companion-code-located-content located))))

(defun gemini-companion-code--missing-kinds (old new)
  "Return the kinds of the errors that OLD has more often than NEW.
OLD and NEW are lists of values of `gemini-companion-code--key'."
  (let ((left (make-hash-table :test #'equal))
        (kinds nil))
    (dolist (key old)
      (cl-incf (gethash key left 0)))
    (dolist (key new)
      (cl-decf (gethash key left 0)))
    (maphash (lambda (key count)
               (when (< 0 count)
                 (push (car key) kinds)))
             left)
    kinds))

(defun gemini-companion-code--may-mask-p (kinds)
  "Return non-nil if errors of one of KINDS may have masked others."
  (let ((case-fold-search t))
    (seq-some (lambda (kind)
                (string-match-p gemini-companion-code--masking kind))
              kinds)))

(defun gemini-companion-code--in-new-lines (located old-text)
  "Return those of the first 20 of LOCATED whose lines OLD-TEXT does not have."
  (let ((old-lines (concat "\n" old-text "\n")))
    (seq-remove
     (lambda (error)
       (string-search
        (concat "\n" (gemini-companion-code-located-content error) "\n")
        old-lines))
     ;; Each search takes time in a large text.
     (seq-take located 20))))

(defun gemini-companion-code-new-errors (errors text old-result old-text)
  "Return the new ERRORS in TEXT, a list of `gemini-companion-code-located'.
OLD-TEXT is the earlier text.  OLD-RESULT is a list with one element, the list
of errors in OLD-TEXT, or nil if these are unknown.

An error is not new if it has only moved or was copied, or if an earlier error
of its kind is missing, whose changed form it may be.  If OLD-RESULT is nil, or
if an earlier error that may have masked others is missing, only errors in new
lines are new."
  (let* ((located (gemini-companion-code--located errors text))
         (old-keys (mapcar #'gemini-companion-code--key
                           (gemini-companion-code--located (car old-result) old-text)))
         (missing (gemini-companion-code--missing-kinds
                   old-keys (mapcar #'gemini-companion-code--key located)))
         (new (seq-remove
               (lambda (error)
                 (or (member (gemini-companion-code--key error) old-keys)
                     (member (gemini-companion-code-located-kind error) missing)))
               located)))
    (if (or (null old-result) (gemini-companion-code--may-mask-p missing))
        (gemini-companion-code--in-new-lines new old-text)
      new)))

;;;; Changed names

(defconst gemini-companion-code--definition
  (concat "\\_<\\(?:def\\|class\\|func\\|function\\|fn\\|type\\|struct\\|enum\\|"
          "interface\\|trait\\|module\\|const\\|let\\|var\\|val\\|#define\\)[ \t]+"
          ;; The receiver of a method in Go.
          "\\(?:([^)\n]*)[ \t]*\\)?\\(?1:[[:alpha:]_][[:alnum:]_]*\\).*$"
          "\\|^\\(?1:[[:alpha:]_][[:alnum:]_]*\\)[ \t]*[:=].*$"
          ;; C, with a bound for lines of a hundred kilobytes.
          "\\|^[[:alpha:]_][[:alnum:]_ \t*]\\{0,80\\}[ \t*]"
          "\\(?1:[[:alpha:]_][[:alnum:]_]*\\)(.*$")
  "Regexp for a line that defines a name, which is its group 1.")

(defconst gemini-companion-code--most-changed 65536
  "Number of characters in changed lines in which definitions are searched.
More would take longer than Emacs may block.")

(defun gemini-companion-code-changed-names (before after)
  "Return a regexp for the names whose definition was changed from BEFORE to AFTER.
Only the first line of a definition is compared.  Return nil if there are no
such names."
  (let ((case-fold-search nil)
        (unchanged (make-hash-table :test #'equal))
        (room gemini-companion-code--most-changed)
        (names nil))
    (dolist (line (gemini-companion-text-lines after))
      (puthash line t unchanged))
    (with-syntax-table (standard-syntax-table)
      (dolist (line (gemini-companion-text-lines before))
        (unless (gethash line unchanged)
          (setq room (- room (length line)))
          (when (and (< 0 room)
                     (string-match gemini-companion-code--definition line))
            (push (match-string 1 line) names)))))
    (and names (regexp-opt names 'symbols))))

;;;; Symbols

(defun gemini-companion-code-occurrences (symbol &optional units)
  "Return the locations of SYMBOL, a string, after point in this buffer.
The value is a list of (LINE . COLUMN), one for each line, in order.  Lines
begin at 1, columns at 0.  A column is the value of the function UNITS for
the text before SYMBOL in the line, by default in UTF-16 code units."
  (let ((case-fold-search nil)
        (line 1)
        (counted (point-min))
        (locations nil))
    ;; A regexp that begins with \\_< takes ten times as long.
    (while (search-forward symbol nil t)
      (let ((beginning (match-beginning 0)))
        (unless (or (gemini-companion-code--inside-word-p beginning)
                    (gemini-companion-code--inside-word-p (point)))
          (setq line (+ line (count-lines counted (line-beginning-position)))
                counted (line-beginning-position))
          (push (cons line (funcall (or units #'gemini-companion-text-units)
                                    (buffer-substring counted beginning)))
                locations)
          (forward-line))))
    (nreverse locations)))

(defun gemini-companion-code--inside-word-p (position)
  "Return non-nil if the characters on both sides of POSITION are of one word.
Beside punctuation, return nil."
  (and (< (point-min) position)
       (save-excursion
         (goto-char (1- position))
         (looking-at-p "[[:alnum:]_$]\\{2\\}"))))

(defun gemini-companion-code-definition ()
  "Return the text of the definition on this line, at most 30 lines.
The text includes the following lines that are empty or indented more than
the first line.  Move point behind it."
  (let ((beginning (line-beginning-position))
        (indentation (current-indentation)))
    (cl-loop repeat 29
             do (forward-line)
             while (and (not (eobp))
                        (or (looking-at-p "[ \t]*$")
                            (< indentation (current-indentation)))))
    (gemini-companion-text-trim (buffer-substring-no-properties beginning (point))
                                nil 'right)))

(provide 'gemini-companion-code)
;;; gemini-companion-code.el ends here
