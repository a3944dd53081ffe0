;;; gemini-companion-highlight.el --- Colors of the texts of a review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Highlight a text by the major mode of its file.  The hooks of the mode do not run,
;; and the text does not change.

;;; Code:

(require 'diff-mode)
(require 'gemini-companion-log)
(require 'gemini-companion-text)

(defvar warning-minimum-log-level)
(declare-function evil-initialize "ext:evil-core")

;;;; Customization

;; A terminal with 256 colors has no pale red and green: Emacs would display purple
;; and teal for the colors of `diff-mode'.  So these faces use colors of the terminal.
(defface gemini-companion-removed
  '((((type tty) (class color) (min-colors 256) (background light))
     :background "#ffd7d7" :extend t)
    (((type tty) (class color) (min-colors 256) (background dark))
     :background "#5f0000" :extend t)
    (t :inherit diff-removed))
  "Face of lines that a CLI removes, and of the text before a change."
  :group 'gemini-companion-reviews)

(defface gemini-companion-added
  '((((type tty) (class color) (min-colors 256) (background light))
     :background "#d7ffd7" :extend t)
    (((type tty) (class color) (min-colors 256) (background dark))
     :background "#005f00" :extend t)
    (t :inherit diff-added))
  "Face of lines that a CLI adds."
  :group 'gemini-companion-reviews)

(defface gemini-companion-removed-words
  '((((type tty) (class color) (min-colors 256) (background light))
     :background "#ffafaf")
    (((type tty) (class color) (min-colors 256) (background dark))
     :background "#870000")
    (t :inherit diff-refine-removed))
  "Face of the words that differ in a removed line."
  :group 'gemini-companion-reviews)

(defface gemini-companion-added-words
  '((((type tty) (class color) (min-colors 256) (background light))
     :background "#87ff87")
    (((type tty) (class color) (min-colors 256) (background dark))
     :background "#008700")
    (t :inherit diff-refine-added))
  "Face of the words that differ in an added line."
  :group 'gemini-companion-reviews)

(defun gemini-companion-highlight (file)
  "Highlight the current buffer like FILE, unless it is highlighted.
No mode hook runs, and all text stays unchanged and visible.  If Evil is on,
turn on its keys in the buffer."
  (unless font-lock-mode
    (gemini-companion-text-keeping-message
      (let ((enable-local-variables nil)
            (enable-dir-local-variables nil)
            (default-directory "/")     ; a mode may look for files there
            (inhibit-interaction t)
            ;; Messages of modes clear the echo area even if they are inhibited.
            (inhibit-message t)
            (warning-minimum-log-level :emergency)
            (inhibit-read-only nil))
        ;; If a mode would change the text, this makes it fail.
        (let ((buffer-read-only t))
          (seq-some (lambda (mode)
                      (gemini-companion-log-guarded "Mode for the review"
                        (delay-mode-hooks (funcall mode))
                        t))
                    (delq nil (list (gemini-companion-highlight--mode file)
                                    #'text-mode))))
        (setq-local glyphless-char-display gemini-companion-text-glyphless)
        ;; In an internal buffer, Font Lock mode stays off, but its hook would run.
        (unless (string-prefix-p " " (buffer-name))
          (gemini-companion-log-guarded "Mode for the review"
            (delay-mode-hooks
              ;; Globalized minor modes use the delayed hook.
              (font-lock-mode 1)
              (when (bound-and-true-p evil-mode)
                (evil-initialize)))))))))

(defun gemini-companion-highlight--mode (file)
  "Return the major mode to highlight FILE, whose text is in this buffer.
Return nil if that mode may do more than highlight."
  (gemini-companion-log-guarded "Mode for the review"
    (let ((mode (or (save-excursion
                      (goto-char (point-min))
                      (when (looking-at auto-mode-interpreter-regexp)
                        (assoc-default
                         (file-name-nondirectory (match-string 2))
                         interpreter-mode-alist
                         (lambda (regexp name)
                           (string-match-p (format "\\`\\(?:%s\\)\\'" regexp)
                                           name)))))
                    (seq-some (lambda (fold)
                                (let ((case-fold-search fold))
                                  (assoc-default file auto-mode-alist
                                                 #'string-match)))
                              (list nil auto-mode-case-fold)))))
      (setq mode (pcase (car (ensure-list mode))
                   ('c-or-c++-mode 'c++-mode)
                   ('conf-mode-maybe 'conf-mode)
                   ((or 'nxml-mode 'xml-mode) 'sgml-mode)
                   (mode mode)))
      (and (symbolp mode)
           (autoload-do-load (indirect-function mode) mode)
           ;; Other modes, such as Org mode, fold, align or hide text, start
           ;; processes, or fetch what the text names.
           (seq-some (apply-partially #'provided-mode-derived-p mode)
                     '(prog-mode conf-mode sgml-mode yaml-mode))
           mode))))

(provide 'gemini-companion-highlight)
;;; gemini-companion-highlight.el ends here
