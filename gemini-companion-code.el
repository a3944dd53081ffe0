;;; gemini-companion-code.el --- Read source code  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What can be read in the text of a program alone: the occurrences of a symbol
;; and its definition, the errors that are new after an edit, and the names that
;; an edit has changed.

;;; Code:

(require 'gemini-companion-text)

;;;; New errors

;; An error is a list of its LINE, TEXT and SOURCE.
(defconst gemini-companion-code--hiding
  (concat "syntax\\|expect\\|indent\\|clos\\|unterminated\\|unmatched\\|pars\\|"
          "separated\\|\\<EO[FL]\\>\\|not found\\|fatal\\|too many errors")
  "Regexp for errors that may mask others.")

(defun gemini-companion-code--located (errors text)
  "Return the ERRORS in TEXT as lists (ERROR KIND CONTENT), by line.
KIND is the text of ERROR without numbers, as they may be line numbers,
and CONTENT its line."
  (with-temp-buffer
    (insert text)
    (goto-char (point-min))
    (let ((at 1))
      (mapcar
       (lambda (error)
         (forward-line (- (car error) at))
         (setq at (car error))
         (list error
               (replace-regexp-in-string "[0-9]+" "0" (nth 1 error))
               (buffer-substring-no-properties (point) (line-end-position))))
       (seq-sort-by #'car #'< errors)))))

(defun gemini-companion-code-new-errors (errors text found old-text)
  "Return the ERRORS in TEXT that are new, as lists (ERROR KIND CONTENT).
FOUND is a list of the errors of OLD-TEXT, the earlier text, or nil if
they are not known.  An error that has only moved or was copied is not
new, nor is one that may be a changed form of an earlier error.  If an
error is gone that may have hidden others, or FOUND is nil, only errors
in new lines are new."
  (let* ((key (pcase-lambda (`(,_ ,kind ,content))
                (cons kind (string-trim content))))
         (old (mapcar key (gemini-companion-code--located (car found) old-text)))
         (left (copy-sequence old))
         (new (seq-remove
               (lambda (one)
                 (when-let* ((same (member (funcall key one) left)))
                   (setcar same nil))
                 (member (funcall key one) old))
               (gemini-companion-code--located errors text)))
         (gone (mapcar #'car (remq nil left)))
         (case-fold-search t))
    (setq new (seq-remove (lambda (one) (member (nth 1 one) gone)) new))
    (when (or (null found)
              (seq-some (apply-partially #'string-match-p
                                         gemini-companion-code--hiding)
                        gone))
      (setq old-text (concat "\n" old-text "\n")
            new (seq-remove
                 (lambda (one)
                   (string-search (concat "\n" (nth 2 one) "\n") old-text))
                 ;; Each takes time in a large text.
                 (seq-take new 20))))
    new))

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

(defun gemini-companion-code-changed-names (before after)
  "Return a regexp for the names whose definitions in BEFORE are not in AFTER.
Return nil if there are none."
  (let ((case-fold-search nil)
        (kept (make-hash-table :test #'equal))
        (room 65536) ; more would take longer than Emacs may block
        names)
    (dolist (line (gemini-companion-text-lines after))
      (puthash line t kept))
    (with-syntax-table (standard-syntax-table)
      (dolist (line (gemini-companion-text-lines before))
        (when (and (not (gethash line kept))
                   (< 0 (cl-decf room (length line)))
                   (string-match gemini-companion-code--definition line))
          (push (match-string 1 line) names))))
    (and names (regexp-opt names 'symbols))))

;;;; Symbols

(defun gemini-companion-code-occurrences (symbol)
  "Return the locations of SYMBOL in this buffer.
That is a list of (LINE . COLUMN), one for each line."
  (let* ((case-fold-search nil)
         ;; A symbol of punctuation has no edge inside a longer word.
         (inside-p (lambda (position)
                     (and (< (point-min) position)
                          (save-excursion
                            (goto-char (1- position))
                            (looking-at-p "[[:alnum:]_$]\\{2\\}")))))
         (line 1)
         (counted (point-min))
         locations)
    ;; A regexp that begins with an edge takes ten times as long.
    (while (search-forward symbol nil t)
      (let ((beginning (match-beginning 0)))
        (unless (or (funcall inside-p beginning) (funcall inside-p (point)))
          (setq line (+ line (count-lines counted (line-beginning-position)))
                counted (line-beginning-position))
          (push (cons line (gemini-companion-text-units
                            (buffer-substring counted beginning)))
                locations)
          (forward-line))))
    (nreverse locations)))

(defun gemini-companion-code-definition ()
  "Return the text of the definition on this line, 30 lines at most.
It includes the following lines that are empty or indented more than
its first one."
  (let ((beginning (line-beginning-position))
        (indentation (current-indentation)))
    (cl-loop repeat 29
             do (forward-line)
             while (and (not (eobp))
                        (or (looking-at-p "[ \t]*$")
                            (< indentation (current-indentation)))))
    (string-trim-right (buffer-substring-no-properties beginning (point)))))

(provide 'gemini-companion-code)
;;; gemini-companion-code.el ends here
