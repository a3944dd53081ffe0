;;; gemini-companion-hunk.el --- Hunks of a proposal  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later


;;; Commentary:

;; The hunks of a proposal, as `diff' finds them, which of them are excluded,
;; and how many lines they add and remove.  Nothing here displays anything; the
;; two texts are in buffers.
;;
;; A hunk is one block of changed lines, a list (OLD OLD-COUNT NEW NEW-COUNT) of
;; lines, from 1 on, in the original and in the proposal with no hunk excluded.
;; In place of an excluded hunk, the proposal has the text of the original, with
;; an overlay that keeps the proposed text.

;;; Code:

(require 'cl-lib)
(require 'diff)
(require 'gemini-companion-text)
(require 'seq)
(require 'subr-x)

;;;; Comparison

(defconst gemini-companion-hunk--re
  (concat "^\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?\\([acd]\\)"
          "\\([0-9]+\\)\\(?:,\\([0-9]+\\)\\)?$")
  "Regexp for the line before each hunk in the output of `diff'.")

(defun gemini-companion-hunk-compare (original proposal on-end)
  "Start `diff' on the buffers ORIGINAL and PROPOSAL; return its process.
ON-END is called with the hunks, or `failed', unless the process
is canceled; see `gemini-companion-hunk-wait'."
  (unless (executable-find diff-command)
    (user-error "Cannot find the program %s; install it or customize \
`diff-command'"
                diff-command))
  (let* ((inhibit-modification-hooks t)
         ;; Write the proposal with no hunk excluded.
         (files (mapcar (lambda (buffer)
                          (gemini-companion-hunk-call-with-all
                           buffer #'gemini-companion-text-temporary-file))
                        (list original proposal)))
         (out (make-temp-file "gemini-companion-"))
         (default-directory "/")
         (process (make-process
                   :name "gemini-companion-diff" :noquery t
                   :connection-type 'pipe
                   :command (apply #'gemini-companion-hunk--command out files)
                   :sentinel (lambda (process _event)
                               (gemini-companion-hunk--collect process)))))
    (process-put process :files (cons out files))
    (process-put process :on-end on-end)
    process))

(defun gemini-companion-hunk--command (out old new)
  "Return the command that compares the files OLD and NEW, and writes OUT.
Reading its output from a pipe would trigger garbage collections."
  ;; The user's own shell may have another syntax.
  (let ((posix (file-executable-p "/bin/sh")))
    (list (if posix "/bin/sh" shell-file-name)
          (if posix "-c" shell-command-switch)
          (concat (and posix "exec ")
                  (mapconcat #'shell-quote-argument
                             (list diff-command "--text" old new) " ")
                  " >" (shell-quote-argument out)))))

(defun gemini-companion-hunk-wait (process seconds)
  "Wait until PROCESS has ended, SECONDS at most."
  (let ((end (+ (float-time) seconds)))
    (while (and (process-live-p process) (< (float-time) end))
      ;; No timers run meanwhile.
      (accept-process-output process 0.005 nil 1)))
  (gemini-companion-hunk--collect process))

(defun gemini-companion-hunk--collect (process)
  "Pass on the hunks that PROCESS has found, if it has ended."
  (when-let* ((files (and (not (process-live-p process))
                          (process-get process :files))))
    (unwind-protect
        (funcall (process-get process :on-end)
                 (if (< 1 (process-exit-status process))
                     'failed
                   (with-temp-buffer
                     (let ((inhibit-modification-hooks t))
                       (insert-file-contents-literally (car files)))
                     (gemini-companion-hunk-read))))
      (gemini-companion-hunk-cancel process))))

(defun gemini-companion-hunk-cancel (process)
  "Kill PROCESS if it is live, and delete its files."
  (let ((files (process-get process :files)))
    (process-put process :files nil)
    ;; That redisplays: windows appear for a moment.
    (when (process-live-p process)
      (delete-process process))
    (mapc #'delete-file files)))

(defun gemini-companion-hunk-read ()
  "Return the hunks in the current buffer, the output of `diff'."
  (let (hunks)
    (save-excursion
      (goto-char (point-min))
      (while (re-search-forward gemini-companion-hunk--re nil t)
        (pcase-let* ((kind (match-string 3))
                     (`(,old ,old-last ,new ,new-last)
                      (mapcar (lambda (group)
                                (string-to-number (or (match-string group) "0")))
                              '(1 2 4 5))))
          ;; A side without lines names the line before it.
          (push (list (if (equal kind "a") (1+ old) old)
                      (if (equal kind "a") 0 (1+ (- (max old old-last) old)))
                      (if (equal kind "d") (1+ new) new)
                      (if (equal kind "d") 0 (1+ (- (max new new-last) new))))
                hunks))))
    (nreverse hunks)))

;;;; Lines

(defun gemini-companion-hunk-line (line)
  "Return where LINE, from 1 on, of the current buffer begins."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (forward-line (1- line))
      (point))))

(defun gemini-companion-hunk-counts (hunks &optional proposal)
  "Return the numbers of HUNKS and of their lines.
The value is a list (HUNKS EXCLUDED ADDED REMOVED): the number of hunks,
of those excluded from PROPOSAL, and of the lines that the other hunks
add and remove."
  ;; A header line may be displayed while no hunk is excluded for a moment, so
  ;; nothing is deleted here.
  (let ((excluded (and proposal
                       (with-current-buffer proposal
                         (seq-filter #'gemini-companion-hunk--excluded-p
                                     (gemini-companion-hunk--overlays)))))
        (lines (lambda (property overlays)
                 (apply #'+ (mapcar (lambda (overlay)
                                      (length (gemini-companion-text-lines
                                               (overlay-get overlay property))))
                                    overlays)))))
    (list (length hunks)
          (length excluded)
          (- (apply #'+ (mapcar #'cl-fourth hunks))
             (funcall lines 'gemini-companion-proposed excluded))
          (- (apply #'+ (mapcar #'cl-second hunks))
             (funcall lines 'gemini-companion-original excluded)))))

(defun gemini-companion-hunk-lines (added removed)
  "Return a text for ADDED and REMOVED numbers of lines."
  (format "+%d %s%d" added (gemini-companion-text-sign ?\u2212 "-") removed))

(defun gemini-companion-hunk-excluded-lines (proposal)
  "Return the lines at which hunks are excluded from the buffer PROPOSAL.
They are counted in the proposal with no hunk excluded."
  (gemini-companion-hunk-call-with-all
   proposal
   (lambda ()
     (save-restriction
       (widen)
       (mapcar (lambda (overlay)
                 (line-number-at-pos (overlay-start overlay)))
               (gemini-companion-hunk--overlays))))))

;;;; Excluding

;; Overlays, as they move with the text when the proposal is edited.

(defvar gemini-companion-hunk-toggling nil
  "Non-nil while a hunk is excluded or restored.")

(defun gemini-companion-hunk-toggle (hunk original proposal)
  "Exclude HUNK of the buffer ORIGINAL from PROPOSAL, or restore it.
Return non-nil if it is excluded now."
  (pcase-let* ((`(,old ,old-count ,new ,new-count) hunk)
               (overlay
                (gemini-companion-hunk-call-with-all
                 proposal
                 (lambda ()
                   (gemini-companion-hunk--overlay
                    (gemini-companion-hunk-line new)
                    (gemini-companion-hunk-line (+ new new-count))
                    (with-current-buffer original
                      (gemini-companion-hunk--text
                       (gemini-companion-hunk-line old)
                       (gemini-companion-hunk-line (+ old old-count)))))))))
    (with-current-buffer proposal
      (undo-boundary)
      (let ((gemini-companion-hunk-toggling t))
        (gemini-companion-hunk--exchange overlay))
      (undo-boundary)
      (or (gemini-companion-hunk--excluded-p overlay)
          (delete-overlay overlay)))))

(defun gemini-companion-hunk--text (beg end)
  "Return the text from BEG to END, ignoring narrowing."
  (save-restriction
    (widen)
    (buffer-substring-no-properties beg end)))

(defun gemini-companion-hunk--excluded-p (overlay)
  "Return non-nil if the hunk of OVERLAY is excluded."
  (string= (overlay-get overlay 'gemini-companion-original)
           (with-current-buffer (overlay-buffer overlay)
             (gemini-companion-hunk--text (overlay-start overlay)
                                          (overlay-end overlay)))))

(defun gemini-companion-hunk-excluded-between-p (beg end)
  "Return non-nil if an excluded hunk is between BEG and END.
By default, these are the ends of the buffer."
  (seq-some #'gemini-companion-hunk--excluded-p
            (gemini-companion-hunk--overlays beg end)))

(defun gemini-companion-hunk-excluded ()
  "Return the overlays of the excluded hunks of the current buffer.
Delete those of hunks that are not excluded any more."
  (seq-filter (lambda (overlay)
                (or (gemini-companion-hunk--excluded-p overlay)
                    (delete-overlay overlay)))
              (gemini-companion-hunk--overlays)))

(defun gemini-companion-hunk--overlays (&optional beg end)
  "Return the overlays of hunks from BEG to END, or in the whole buffer."
  (save-restriction
    (widen)
    (let ((beg (or beg (point-min)))
          (end (or end (point-max))))
      (seq-filter (lambda (overlay)
                    (and (overlay-get overlay 'gemini-companion-original)
                         (<= beg (overlay-start overlay))
                         (<= (overlay-end overlay) end)))
                  (overlays-in beg end)))))

(defun gemini-companion-hunk--overlay (beg end original)
  "Return the overlay of the hunk from BEG to END, a new one if necessary.
ORIGINAL is the text in its place in the original."
  (let ((proposed (gemini-companion-hunk--text beg end)))
    (cond ((car (gemini-companion-hunk--overlays beg end)))
          ((string= original proposed)
           (user-error "Hunk is identical to the file"))
          (t
           (let ((overlay (make-overlay beg end nil nil 'rear-advance)))
             (overlay-put overlay 'gemini-companion-original original)
             (overlay-put overlay 'gemini-companion-proposed proposed)
             overlay)))))

(defun gemini-companion-hunk--exchange (overlay)
  "Replace the text of OVERLAY in the current buffer by its other one."
  (let ((text (overlay-get overlay
                           (if (gemini-companion-hunk--excluded-p overlay)
                               'gemini-companion-proposed
                             'gemini-companion-original)))
        (beg (overlay-start overlay))
        (end (overlay-end overlay)))
    (save-excursion
      (save-restriction
        (widen)
        (goto-char end)
        (insert text)
        (delete-region beg end)))))

(defun gemini-companion-hunk-call-with-all (buffer function)
  "Return the value of FUNCTION, called while BUFFER has no hunk excluded.
BUFFER, a proposal, is current, and must not be edited by FUNCTION."
  (with-current-buffer buffer
    (let ((overlays (gemini-companion-hunk-excluded)))
      (gemini-companion-hunk--exchange-all overlays)
      (unwind-protect (funcall function)
        (with-current-buffer buffer
          (gemini-companion-hunk--exchange-all overlays))))))

(defun gemini-companion-hunk--exchange-all (overlays)
  "Exchange the texts of OVERLAYS in the current buffer.
No hooks run, because it is done twice."
  (let ((modified (buffer-modified-p))
        (buffer-undo-list t)
        (inhibit-modification-hooks t)
        (inhibit-read-only t))
    (mapc #'gemini-companion-hunk--exchange overlays)
    (when overlays
      (syntax-ppss-flush-cache (point-min)))
    (restore-buffer-modified-p modified)))

(provide 'gemini-companion-hunk)
;;; gemini-companion-hunk.el ends here
