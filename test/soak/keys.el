;;; keys.el --- What the soak test by random keys needs in Emacs  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'cl-lib)

(declare-function gemini-companion-list "gemini-companion-overview")

(setq message-log-max 1000
      create-lockfiles nil
      make-backup-files nil
      auto-save-default nil
      confirm-kill-emacs nil)
;; C-r begins a recursive edit in a question with several answers.  If the buffer is
;; killed meanwhile, Emacs 28 to 30 count that edit for ever, and nothing is quiet again.
(define-key query-replace-map (kbd "C-r") nil)
;; Strings that are made for each redisplay, as many people have them.
(setq-default mode-line-format
              '(:eval (list (propertize (make-string 9 ?z) 'face (list 'bold))
                            (propertize "%b" 'face (list 'italic)))))

(dolist (key '(("<f5>" . gemini-companion-review)
               ("<f6>" . gemini-companion-list)
               ("<f7>" . gemini-companion-next-change)
               ("<f8>" . gemini-companion-undo-change)
               ("<f9>" . gemini-companion-status)
               ("<f10>" . gemini-companion-turn-page)))
  (global-set-key (kbd (car key)) (cdr key)))

(defun soak-macro (keys)
  "Execute KEYS as a keyboard macro, soon.
An error ends it, as it ends any."
  (run-at-time 0 nil (lambda ()
                       (let ((inhibit-quit nil))
                         (condition-case nil
                             (execute-kbd-macro keys)
                           ((error quit) nil)))))
  nil)

(defun soak-top-level ()
  "End what asks, and recursive edits, soon."
  (unless (soak-quiet-p)
    (run-at-time 0 nil #'top-level))
  nil)

(defun soak-quiet-p ()
  "Return non-nil if nothing is asked."
  (and (zerop (recursion-depth)) (not (active-minibuffer-window))))

(defun soak-close-frames ()
  "Delete all frames and tabs but the selected ones."
  (delete-other-frames)
  (when (fboundp 'tab-bar-close-other-tabs)
    (tab-bar-close-other-tabs))
  nil)

(defun soak-counts ()
  "Return how many things this Emacs has that must not grow, an alist."
  `((buffers . ,(cl-count-if
                 (lambda (buffer)
                   ;; Random keys make others, as the answer to C-x b.  Emacs makes
                   ;; and keeps an old buffer for one that a tab displayed.
                   (or (buffer-file-name buffer)
                       (and (string-match-p "\\`[ *]" (buffer-name buffer))
                            (not (string-prefix-p " *Old buffer "
                                                  (buffer-name buffer))))))
                 (buffer-list)))
    (timers . ,(length (append timer-list timer-idle-list)))
    (processes . ,(length (process-list)))
    (overlays . ,(cl-loop for buffer in (buffer-list)
                          sum (with-current-buffer buffer
                                (save-restriction
                                  (widen)
                                  (length (overlays-in (point-min)
                                                       (point-max)))))))
    (windows . ,(length (window-list)))
    (frames . ,(length (frame-list)))))

(defun soak-live-bytes ()
  "Collect garbage and return the size of the live objects."
  (cl-loop for (_name size used . _) in (garbage-collect)
           sum (* size used)))

(provide 'keys)
;;; keys.el ends here
