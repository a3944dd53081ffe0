;;; gemini-companion-look.el --- What all views of a proposal share  -*- lexical-binding: t; -*-

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

;; The file that a proposal would change, as Gemini CLI reads it, in a buffer
;; of its own; colours for the buffers of a review; and their header lines.
;; Nothing here knows how the two texts are compared, nor where they are shown.

;;; Code:

(require 'gemini-companion-diff)
(require 'gemini-companion-hunks)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'seq)

(defvar-local gemini-companion-look-file nil
  "The file that holds the text of this buffer, to the byte, or nil.")
(put 'gemini-companion-look-file 'permanent-local t)

;;;; Original

(defun gemini-companion-look-original (diff)
  "Return a read-only buffer with what DIFF would change.
Its text is that of the file on disk, decoded as Gemini CLI does
it; of a new file it is empty."
  (let ((directory (buffer-local-value
                    'default-directory
                    (gemini-companion-diff-proposal-buffer diff)))
        (file (gemini-companion-diff-file-path diff)))
    (with-current-buffer
        (generate-new-buffer (format "*gemini original: %s*"
                                     (gemini-companion-diff-name diff 'plain)))
      (setq default-directory directory)
      (buffer-disable-undo)
      (condition-case problem
          (setf (gemini-companion-diff-remarks diff)
                (if (file-exists-p file)
                    (let ((inhibit-modification-hooks t))
                      (gemini-companion-look--read file))
                  '("new file")))
        (error
         (gemini-companion-diff-discard (current-buffer))
         (signal (car problem) (cdr problem))))
      (goto-char (point-min))
      (set-buffer-modified-p nil)
      (setq buffer-read-only t)
      (gemini-companion-diff-adopt diff)
      (current-buffer))))

(defun gemini-companion-look-read-again (original diff)
  "Make the text in the buffer ORIGINAL that of the file of DIFF now.
Points and markers stay where they are in the text."
  (let ((new (gemini-companion-look-original diff)))
    (unwind-protect
        (with-current-buffer original
          (let ((inhibit-read-only t))
            (save-restriction
              (widen)
              (replace-buffer-contents new 0.2)))
          (set-buffer-modified-p nil)
          (setq gemini-companion-look-file
                (buffer-local-value 'gemini-companion-look-file new)))
      (gemini-companion-diff-discard new))))

(defun gemini-companion-look--read (file)
  "Insert FILE as Gemini CLI has it, and return remarks on it, strings."
  (let* ((bytes (gemini-companion-text-fill file))
         ;; In a buffer one byte that is not UTF-8 takes two.
         (raw (/= bytes (1- (position-bytes (point-max)))))
         (latin (and raw (not (gemini-companion-look--odd-bytes-p))))
         (bom (eq ?\uFEFF (char-after (point-min))))
         ;; Emacs finds a plain string in a third of the speed.
         (returns (gemini-companion-look--replace "\r[\n]" "\n")))
    (when raw
      (gemini-companion-look--replace
       (format "[%c-%c]" #x3FFF80 #x3FFFFF) "\uFFFD"))
    (when bom
      (delete-region (point-min) (1+ (point-min))))
    (unless (or bom returns raw)
      (setq gemini-companion-look-file file))
    (and raw (list (if latin "latin-1 file" "not UTF-8")))))

(defun gemini-companion-look--odd-bytes-p ()
  "Return non-nil if the current buffer has bytes that are in no Latin-1 text.
Those that it keeps for control characters are in hardly any."
  (goto-char (point-min))
  (re-search-forward (format "[\0%c-%c]" #x3FFF80 #x3FFF9F) nil t))

(defun gemini-companion-look--replace (regexp text)
  "Replace what matches REGEXP in the current buffer by TEXT.
Return non-nil if there was any."
  (goto-char (point-min))
  (let ((case-fold-search nil)
        found)
    (while (re-search-forward regexp nil t)
      (setq found t)
      (replace-match text t t))
    found))

(defun gemini-companion-look-same-p (original proposal)
  "Return non-nil if the buffers ORIGINAL and PROPOSAL have the same text."
  (and (= (buffer-size original) (buffer-size proposal))
       (let ((case-fold-search nil))
         (with-current-buffer proposal
           (save-restriction
             (widen)
             (zerop (compare-buffer-substrings original nil nil
                                               proposal nil nil)))))))

;;;; Colours

(defvar warning-minimum-log-level)
(declare-function evil-initialize "ext:evil-core")
(declare-function evil-initial-state "ext:evil-core")
(declare-function evil-set-initial-state "ext:evil-core")

(defun gemini-companion-look-letters-are-keys (mode)
  "Have Evil leave the letters in buffers of MODE, a major mode, to its map.
A state that the user has set for MODE stays."
  (when (and (fboundp 'evil-initial-state)
             (not (evil-initial-state mode)))
    (evil-set-initial-state mode 'emacs)))

(defconst gemini-companion-look--modes
  '(prog-mode conf-mode sgml-mode yaml-mode)
  "Modes that only highlight, as those derived from them do.
Others fold, align or hide text, start processes, or fetch what the
text names, as Org mode does.")

(defconst gemini-companion-look--substitutes
  '((c-or-c++-mode . c++-mode)
    (conf-mode-maybe . conf-mode)
    (nxml-mode . sgml-mode))
  "Alist of what `auto-mode-alist' names and the mode to use for it.")

(defun gemini-companion-look-colour (file)
  "Highlight the current buffer as FILE would be, unless it is already.
No mode hook runs, and the text stays as it is and visible as a
whole.  A user of Evil has its keys there, too."
  (unless font-lock-mode
    (let ((enable-local-variables nil)
          (enable-dir-local-variables nil)
          (inhibit-interaction t)
          ;; Some modes tell what they guess.
          (inhibit-message t)
          (warning-minimum-log-level :emergency)
          (mode (gemini-companion-look--mode file)))
      (unless (and mode (gemini-companion-look--use mode))
        (gemini-companion-look--use #'text-mode))
      (with-demoted-errors "Mode for the review: %S"
        (delay-mode-hooks
          ;; Their globalized modes hang on the delayed hook.
          (font-lock-mode 1)
          (when (bound-and-true-p evil-mode)
            (evil-initialize)))))))

(defun gemini-companion-look--use (mode)
  "Put the current buffer in MODE; return nil if that did more than it should.
The text is as before."
  (let ((text (gemini-companion-look--text))
        (tick (buffer-chars-modified-tick))
        (read-only buffer-read-only)
        (overlays (overlays-in (point-min) (point-max)))
        (processes (process-list))
        (buffer-undo-list t)
        (inhibit-modification-hooks t)
        done)
    (with-demoted-errors "Mode for the review: %S"
      (save-restriction
        (delay-mode-hooks (funcall mode)))
      (setq done t))
    (unless (and (= tick (buffer-chars-modified-tick))
                 enable-multibyte-characters)
      (let ((inhibit-read-only t))
        (widen)
        (erase-buffer)
        (set-buffer-multibyte t)
        (insert text)
        (goto-char (point-min)))
      (gemini-companion-look--untouched tick)
      (setq done nil))
    (dolist (process (seq-difference (process-list) processes #'eq))
      (delete-process process)
      (setq done nil))
    (mapc #'delete-overlay
          (seq-difference (overlays-in (point-min) (point-max))
                          overlays #'eq))
    (setq buffer-read-only read-only
          buffer-invisibility-spec nil
          buffer-display-table nil
          selective-display nil)
    done))

(defun gemini-companion-look--untouched (tick)
  "Note that the current buffer is as when TICK was its modified tick.
If it is a proposal, nobody has edited it since."
  (let ((diff gemini-companion-diff-here))
    (when (and diff
               (eq (current-buffer)
                   (gemini-companion-diff-proposal-buffer diff))
               (= tick (gemini-companion-diff-tick diff)))
      (setf (gemini-companion-diff-tick diff)
            (buffer-chars-modified-tick)))))

(defun gemini-companion-look--text ()
  "Return the whole text of the current buffer, without properties."
  (save-restriction
    (widen)
    (buffer-substring-no-properties (point-min) (point-max))))

(defun gemini-companion-look--mode (file)
  "Return the major mode for the colours of FILE, whose text is current.
Return nil if that mode may do more."
  (with-demoted-errors "Mode for the review: %S"
    (let ((mode (or (gemini-companion-look--interpreter-mode)
                    (gemini-companion-look--mode-by-name
                     (file-name-sans-versions file)))))
      ;; That it is derived is not known of an alias.
      (while (and (symbolp mode) (fboundp mode)
                  (symbolp (symbol-function mode)))
        (setq mode (symbol-function mode)))
      (setq mode (alist-get mode gemini-companion-look--substitutes mode))
      (and (symbolp mode)
           (fboundp mode)
           (autoload-do-load (symbol-function mode) mode)
           (apply #'provided-mode-derived-p mode gemini-companion-look--modes)
           mode))))

(defun gemini-companion-look--interpreter-mode ()
  "Return the mode for the interpreter that the first line names, or nil."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (when (looking-at auto-mode-interpreter-regexp)
        (assoc-default (file-name-nondirectory (match-string 2))
                       interpreter-mode-alist
                       (lambda (regexp name)
                         (string-match-p (format "\\`\\(?:%s\\)\\'" regexp)
                                         name)))))))

(defun gemini-companion-look--mode-by-name (name)
  "Return the mode for a file with NAME, or nil."
  (let ((mode (or (let ((case-fold-search nil))
                    (assoc-default name auto-mode-alist #'string-match))
                  (let ((case-fold-search t))
                    (and auto-mode-case-fold
                         (assoc-default name auto-mode-alist
                                        #'string-match))))))
    ;; Of a suffix such as that of a backup, only what is before it counts.
    (if (consp mode)
        (if (cadr mode)
            (gemini-companion-look--mode-by-name
             (substring name 0 (match-beginning 0)))
          (car mode))
      mode)))

;;;; Header line

(defun gemini-companion-look-header (&rest parts)
  "Return a header line of PARTS, two blanks before each.
A part is a string, an `:eval' form, or nil."
  (cons " " (cdr (seq-mapcat (lambda (part)
                               (list "  " (if (stringp part)
                                              (gemini-companion-look--verbatim
                                               part)
                                            part)))
                             (delq nil parts)))))

(defun gemini-companion-look--verbatim (text)
  "Return TEXT with percent signs doubled, for a header line."
  (replace-regexp-in-string "%" "%%" text t t))

(defun gemini-companion-look-keys (&rest commands)
  "Return what the keys in the current buffer do, as a line of text.
COMMANDS are a plist of commands and what a person calls them."
  (mapconcat (pcase-lambda (`(,command ,name))
               (concat (substitute-command-keys
                        (format "\\[%s]" command))
                       " " name))
             (seq-partition commands 2)
             "  "))

(defun gemini-companion-look-excluded (proposal total)
  "Return how many of TOTAL hunks are excluded, as a part of a header line.
PROPOSAL is the buffer that they are excluded from, TOTAL a form."
  `(:eval (gemini-companion-look--excluded ,proposal ,total)))

(defun gemini-companion-look--excluded (proposal total)
  "Return how many of TOTAL hunks are excluded from PROPOSAL, or nothing."
  (let ((count (with-current-buffer proposal
                 (length (gemini-companion-hunks-excluded)))))
    (if (zerop count)
        ""
      (propertize (format "%d of %d hunks excluded" count total)
                  'face 'warning))))

(defun gemini-companion-look-subject (diff)
  "Return what DIFF is about, as a part of a header line.
That is its file, remarks that follow what happens, and the CLI."
  (let ((name (copy-sequence (gemini-companion-diff-name diff))))
    (add-face-text-property 0 (length name) 'bold 'append name)
    `(:eval (gemini-companion-look--subject ,name ',diff))))

(defun gemini-companion-look--subject (name diff)
  "Return what DIFF is about, beginning with NAME, for a header line."
  (let ((session (gemini-companion-diff-session diff)))
    (gemini-companion-look--verbatim
     (string-join
      (append (list name)
              (mapcar (lambda (remark) (propertize remark 'face 'warning))
                      (append
                       (ensure-list (gemini-companion-diff-note diff))
                       (gemini-companion-diff-remarks diff)
                       (when (gemini-companion-diff-changed diff)
                         '("file changed since it was proposed"))
                       (when (gemini-companion-diff-unsaved diff)
                         '("unsaved changes here"))
                       (unless (gemini-companion-session-connected-p session)
                         '("not connected"))))
              (list (gemini-companion-session-name session)))
      ", "))))

(provide 'gemini-companion-look)
;;; gemini-companion-look.el ends here
