;;; gemini-companion-resume.el --- Resume conversations of CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The conversations that a CLI has kept for a project, in a buffer; the one
;; that the user chooses is resumed in a terminal, which takes its window.
;;
;; The CLI is asked for them by its program, which takes seconds.  Nothing is
;; known here about its files.
;;
;; After a restart of Emacs, a desktop has such a buffer where a CLI was in a
;; terminal.

;;; Code:

(require 'gemini-companion-clients)
(require 'gemini-companion-name)
(require 'gemini-companion-run)
(require 'gemini-companion-session)
(require 'json)
(require 'tabulated-list)

(defvar desktop-minor-mode-handlers)

;;;; Conversations

(defun gemini-companion-resume--parse (output)
  "Return the conversations in OUTPUT of a CLI, as `tabulated-list-entries'.
The newest comes first.  Gemini CLI prints that last, and Qwen Code
prints objects of JSON."
  (let ((entries nil))
    (dolist (line (split-string output "[\r\n]+" t))
      (if (string-match "\\` *[0-9]+\\. \\(.*\\) (\\([^()]*\\)) \\[\\([^]]+\\)\\]\\'"
                        line)
          (push (list (match-string 3 line) (match-string 2 line)
                      (match-string 1 line))
                entries)
        ;; Other lines are of its log.
        (let-alist (and (string-prefix-p "{" line)
                        (ignore-errors (json-read-from-string line)))
          (when .sessionId
            (setq entries
                  (append entries
                          (list (list .sessionId
                                      (format-time-string "%F %R"
                                                          (/ .mtime 1000))
                                      (or .customTitle .prompt "")))))))))
    (mapcar (pcase-lambda (`(,id ,time ,words))
              (list id (vector time (gemini-companion-name-escaped
                                     (replace-regexp-in-string
                                      "[ \t\n\r]+" " " words)))))
            entries)))

(defun gemini-companion-resume--list ()
  "List the conversations of the CLI of this buffer, once it prints them."
  (gemini-companion-resume--say "Listing the conversations of %s...")
  (let* ((buffer (current-buffer))
         (place gemini-companion-run-place)
         (client (plist-get place :client))
         (process-environment (gemini-companion-run-environment place))
         (exec-path (plist-get place :path))
         (output (generate-new-buffer " *gemini conversations*"))
         (process
          (make-process
           :name "gemini-companion-conversations" :buffer output :noquery t
           :command (append (gemini-companion-run-command client)
                            (gemini-companion-clients-get client :conversations))
           :connection-type 'pipe :coding 'utf-8
           :sentinel
           (lambda (process _event)
             (unless (process-live-p process)
               (let ((text (with-current-buffer output (buffer-string))))
                 (kill-buffer output)
                 (when (buffer-live-p buffer)
                   (with-current-buffer buffer
                     (gemini-companion-resume--show
                      text (process-exit-status process))))))))))
    ;; This fails if it has exited.
    (ignore-errors (process-send-eof process))))

(defun gemini-companion-resume--show (output status)
  "Show the conversations in OUTPUT of a CLI that exited with STATUS."
  (setq tabulated-list-entries (gemini-companion-resume--parse output)
        truncate-lines (and tabulated-list-entries t))
  (cond (tabulated-list-entries
         (tabulated-list-print))
        ((eq 0 status)
         (gemini-companion-resume--say
          "%s has no conversation to resume; %s begins one"
          (substitute-command-keys "\\[gemini-companion-run]")))
        (t
         (gemini-companion-resume--say
          "%s cannot list its conversations: %s"
          (or (car (last (split-string output "[\r\n]+" t)))
              (format "exit status %s" status))))))

(defun gemini-companion-resume--say (format &rest arguments)
  "Show FORMAT with the name of the CLI of this buffer and ARGUMENTS."
  (let ((inhibit-read-only t))
    (erase-buffer)
    (insert (apply #'format format
                   (gemini-companion-session-name
                    gemini-companion-run-place)
                   arguments)
            "\n")
    (goto-char (point-min))))

;;;; Commands

;;;###autoload
(define-derived-mode gemini-companion-resume-mode tabulated-list-mode
  "Conversations"
  "Mode of the list of conversations that a CLI can resume.
\\{gemini-companion-resume-mode-map}"
  (setq tabulated-list-format [("When" 17 nil) ("Conversation" 0 nil)]
        tabulated-list-padding 1)
  (setq-local desktop-save-buffer #'gemini-companion-run-desktop
              revert-buffer-function
              (lambda (&rest _) (gemini-companion-resume--list)))
  (tabulated-list-init-header))

(define-key gemini-companion-resume-mode-map
  (kbd "RET") #'gemini-companion-resume-at-point)

(defun gemini-companion-resume-at-point ()
  "Resume the conversation at point, in a terminal in this window."
  (interactive nil gemini-companion-resume-mode)
  (gemini-companion-run-start
   `( :resume ,(or (tabulated-list-get-id)
                   (user-error "No conversation at point; type g to list them"))
      ,@gemini-companion-run-place)))

;;;###autoload
(defun gemini-companion-resume (&optional number)
  "List the conversations of the CLI of this project, to resume one.
NUMBER, the prefix argument, is as for `gemini-companion-run'.  If that
CLI is running, the conversation is resumed in one more."
  (interactive "P")
  (let ((place (gemini-companion-run-wanted-place number)))
    (when (plist-get place :remote)
      (user-error "Conversations on other hosts are not listed; type /resume in \
the CLI"))
    (gemini-companion-run-check-place place)
    (when (gemini-companion-run-live-buffer place)
      (setq place `( :number ,(gemini-companion-run-free-number place)
                     ,@place)))
    (gemini-companion-run-show-buffer place)
    (gemini-companion-resume-mode)
    (gemini-companion-resume--list)))

;;;; Desktop

;;;###autoload
(dolist (mode '(vterm-mode eat-mode term-mode gemini-companion-resume-mode))
  (add-to-list 'desktop-buffer-mode-handlers
               (cons mode 'gemini-companion-resume-restore) t))

;;;###autoload
(defun gemini-companion-resume-restore (_file name place)
  "Return a buffer NAME in which the CLI of PLACE can be resumed.
PLACE is what `gemini-companion-run-desktop' has saved.  Return nil if
it is nil, or if its directory does not exist."
  (let ((directory (plist-get place :directory)))
    (when (and directory (file-directory-p directory))
      (with-current-buffer (get-buffer-create name)
        (gemini-companion-resume-mode)
        (setq default-directory directory
              gemini-companion-run-place
              `(:environment ,process-environment :path ,exec-path ,@place))
        ;; Modes of a terminal, which the desktop names, would take the keys.
        (setq-local desktop-minor-mode-handlers
                    (append (mapcan (lambda (mode)
                                      (when (local-variable-if-set-p mode)
                                        (list (cons mode #'ignore))))
                                    minor-mode-list)
                            desktop-minor-mode-handlers))
        (gemini-companion-resume--say
         "%s ran here; g lists its conversations, to resume one")
        (current-buffer)))))

(provide 'gemini-companion-resume)
;;; gemini-companion-resume.el ends here
