;;; gemini-companion-highlight.el --- Colors of the texts of a review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Highlight a text by the major mode of its file.  The hooks of the mode do not run,
;; and the text does not change.

;;; Code:

(require 'gemini-companion-label)
(require 'gemini-companion-log)
(require 'gemini-companion-text)

(defvar warning-minimum-log-level)
(declare-function evil-initialize "ext:evil-core")

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
        (setq-local glyphless-char-display gemini-companion-label-glyphless)
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
