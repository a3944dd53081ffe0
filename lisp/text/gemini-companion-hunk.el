;;; gemini-companion-hunk.el --- Hunks, and which of them are excluded  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A hunk is a block of lines in which two texts differ: the file and the proposal,
;; or the text before and after a write.  An overlay marks an excluded hunk in the
;; proposal and leaves its text alone.  `gemini-companion-hunk-remaining-text'
;; computes the text to be written from the proposal and these overlays.

;;; Code:

(require 'gemini-companion-text)

;;;; Customization

(defface gemini-companion-excluded-text
  '((t :strike-through t))
  "Face of the text of a hunk that is excluded from a proposal.
The face `shadow' also applies to it."
  :group 'gemini-companion-reviews)

;;;; State

(cl-defstruct (gemini-companion-hunk
               (:noinline t)
               (:constructor gemini-companion-hunk-make
                             (old old-count new new-count)))
  "Lines in which two texts differ.
The first text has OLD-COUNT lines, from line OLD; the second text has
NEW-COUNT lines in their place, from line NEW.  If a count is 0, the line is
the next one after the hunk.  Lines are counted from 1: the hunk from
\"a\nb\n\" to \"a\nX\nY\nb\n\" is 2, 0, 2, 2.  Hunks with the same numbers
are `equal'."
  old old-count new new-count)

(cl-defstruct (gemini-companion-hunk-counts
               (:noinline t)
               (:constructor gemini-companion-hunk--make-counts)
               (:copier nil))
  "Size of an edit: the number of its HUNKS, and of those EXCLUDED.
ADDED and REMOVED are numbers of lines, without those of excluded hunks."
  (hunks 0) (excluded 0) (added 0) (removed 0))

;;;; Hunks

(defun gemini-companion-hunk-old-end (hunk)
  "Return the number of the line after those of HUNK in the first text."
  (+ (gemini-companion-hunk-old hunk) (gemini-companion-hunk-old-count hunk)))

(defun gemini-companion-hunk-new-end (hunk)
  "Return the number of the line after those of HUNK in the second text."
  (+ (gemini-companion-hunk-new hunk) (gemini-companion-hunk-new-count hunk)))

(defun gemini-companion-hunk-touch-p (beg-a end-a beg-b end-b)
  "Return non-nil if the lines BEG-A to END-A touch the lines BEG-B to END-B.
END-A and END-B are exclusive.  Ranges touch if they have lines in common.  An
empty range touches a range that contains it or begins or ends there."
  (if (or (= beg-a end-a) (= beg-b end-b))
      (and (<= beg-a end-b) (<= beg-b end-a))
    (and (< beg-a end-b) (< beg-b end-a))))

(defun gemini-companion-hunk-compare (old new)
  "Return the hunks between the texts OLD and NEW, in order.
Signal `gemini-companion-text-not-compared' if diff fails."
  (mapcar (apply-partially #'apply #'gemini-companion-hunk-make)
          (gemini-companion-text-diff (list old new))))

(defun gemini-companion-hunk-line (line)
  "Return the position where LINE, from 1, of the current buffer begins."
  (save-excursion
    (save-restriction
      (widen)
      (goto-char (point-min))
      (forward-line (1- line))
      (point))))

(defun gemini-companion-hunk-count (hunks excluded)
  "Return the `gemini-companion-hunk-counts' of HUNKS.
EXCLUDED are the excluded ones of HUNKS.  Both lists are in order of lines."
  (let ((counts (gemini-companion-hunk--make-counts
                 :hunks (length hunks) :excluded (length excluded))))
    (dolist (hunk hunks)
      (if (equal hunk (car excluded))
          (pop excluded)
        (cl-incf (gemini-companion-hunk-counts-added counts)
                 (gemini-companion-hunk-new-count hunk))
        (cl-incf (gemini-companion-hunk-counts-removed counts)
                 (gemini-companion-hunk-old-count hunk))))
    counts))

(defun gemini-companion-hunk-lines (added removed)
  "Return a text for the numbers of ADDED and REMOVED lines: \"+3 -1\"."
  (format "+%d %s%d" added (gemini-companion-text-sign ?\u2212 "-") removed))

(defun gemini-companion-hunk-range (lines)
  "Return a text such as \"3\" or \"3-5\" for LINES.
LINES is a number, or a cons (FIRST . LAST), which may be one line."
  (pcase lines
    ((or (and (pred numberp) line)
         (and `(,line . ,last) (guard (= line last))))
     (number-to-string line))
    (`(,first . ,last)
     (format "%d-%d" first last))))

;;;; Excluded hunks

(defun gemini-companion-hunk--texts (hunk original proposal)
  "Return the lines of HUNK in the buffers ORIGINAL and PROPOSAL, a list."
  (let ((between (lambda (buffer line end)
                   (with-current-buffer buffer
                     (save-restriction
                       (widen)
                       (buffer-substring-no-properties
                        (gemini-companion-hunk-line line)
                        (gemini-companion-hunk-line end)))))))
    (list (funcall between original (gemini-companion-hunk-old hunk)
                   (gemini-companion-hunk-old-end hunk))
          (funcall between proposal (gemini-companion-hunk-new hunk)
                   (gemini-companion-hunk-new-end hunk)))))

(defun gemini-companion-hunk--exclude (hunk original proposal)
  "Mark the lines of HUNK of the buffer ORIGINAL in PROPOSAL as excluded."
  (with-current-buffer proposal
    (let* ((beg (gemini-companion-hunk-line (gemini-companion-hunk-new hunk)))
           (end (gemini-companion-hunk-line (gemini-companion-hunk-new-end hunk)))
           (mark (make-overlay beg end nil (< beg end)))
           (removed (gemini-companion-hunk-old-count hunk)))
      (overlay-put mark 'gemini-companion-hunk hunk)
      (overlay-put mark 'gemini-companion-texts
                   (gemini-companion-hunk--texts hunk original proposal))
      (overlay-put mark 'face '(gemini-companion-excluded-text shadow))
      (overlay-put mark 'line-prefix "x")
      (overlay-put mark 'wrap-prefix " ")
      ;; A hunk without lines in the proposal would be invisible there.
      (when (= beg end)
        (overlay-put mark 'before-string
                     (propertize
                      (format (ngettext "x %d removed line stays\n"
                                        "x %d removed lines stay\n"
                                        removed)
                              removed)
                      'face 'shadow))))))

(defun gemini-companion-hunk-toggle (hunk original proposal)
  "Exclude HUNK of the buffer ORIGINAL from PROPOSAL, or restore it.
Return non-nil if it is excluded now."
  (if-let* ((mark (seq-find
                   (lambda (mark)
                     (equal hunk (overlay-get mark 'gemini-companion-hunk)))
                   (gemini-companion-hunk-marks proposal))))
      (ignore (delete-overlay mark))
    (gemini-companion-hunk--exclude hunk original proposal)
    t))

(defun gemini-companion-hunk-marks (proposal)
  "Return the overlays of the hunks excluded from PROPOSAL, in order."
  (with-current-buffer proposal
    (save-restriction
      (widen)
      (seq-sort-by
       (lambda (mark)
         (gemini-companion-hunk-old (overlay-get mark 'gemini-companion-hunk)))
       #'<
       (seq-filter #'gemini-companion-hunk--valid-p
                   (gemini-companion-hunk--all-marks))))))

(defun gemini-companion-hunk--all-marks ()
  "Return the overlays of excluded hunks in the accessible text."
  (seq-filter (lambda (overlay) (overlay-get overlay 'gemini-companion-hunk))
              (overlays-in (point-min) (point-max))))

(defun gemini-companion-hunk--valid-p (mark)
  "Return non-nil if MARK still has its lines, and these only.
The buffer of MARK is current, and widened."
  (pcase-let ((`(,original ,proposed)
               (overlay-get mark 'gemini-companion-texts))
              (beg (overlay-start mark))
              (end (overlay-end mark)))
    (and (string= (buffer-substring-no-properties beg end) proposed)
         (memq (char-before beg) '(?\n nil))
         (or (= end (point-max))
             (and (memq (char-before end) '(?\n nil))
                  ;; A text without a newline at its end would be joined with the
                  ;; next line.
                  (string-match-p "\\(?:\\`\\|\n\\)\\'" original))))))

(defun gemini-companion-hunk-prune (proposal hunks original)
  "Restore the excluded hunks of PROPOSAL that were edited; return their number.
If ORIGINAL is non-nil, HUNKS are the hunks between ORIGINAL and PROPOSAL.
Then restore each excluded hunk that is not one of HUNKS as well."
  (with-current-buffer proposal
    (save-restriction
      (widen)
      (let ((restored (seq-remove
                       (lambda (mark)
                         (and (gemini-companion-hunk--valid-p mark)
                              (or (null original)
                                  (gemini-companion-hunk--update
                                   mark hunks original))))
                       (gemini-companion-hunk--all-marks))))
        (mapc #'delete-overlay restored)
        (length restored)))))

(defun gemini-companion-hunk--update (mark hunks original)
  "Record the one of HUNKS, from the buffer ORIGINAL, that MARK excludes.
Return nil if there is no such hunk."
  (when-let* ((hunk (cl-find (line-number-at-pos (overlay-start mark)) hunks
                             :key #'gemini-companion-hunk-new))
              ((equal (overlay-get mark 'gemini-companion-texts)
                      (gemini-companion-hunk--texts hunk original
                                                    (current-buffer)))))
    (overlay-put mark 'gemini-companion-hunk hunk)))

(defun gemini-companion-hunk-excluded (proposal)
  "Return the hunks that are excluded from the buffer PROPOSAL.
Their line numbers are those of the last comparison."
  (mapcar (lambda (mark) (overlay-get mark 'gemini-companion-hunk))
          (gemini-companion-hunk-marks proposal)))

(defun gemini-companion-hunk-remaining-text (proposal)
  "Return the text of the buffer PROPOSAL without the excluded hunks.
The original lines replace each of them."
  (let ((text (gemini-companion-text-of-buffer proposal))
        (position 0))
    (concat (mapconcat (lambda (mark)
                         (prog1 (concat
                                 (substring text position
                                            (1- (overlay-start mark)))
                                 (car (overlay-get mark 'gemini-companion-texts)))
                           (setq position (1- (overlay-end mark)))))
                       (gemini-companion-hunk-marks proposal) "")
            (substring text position))))

(provide 'gemini-companion-hunk)
;;; gemini-companion-hunk.el ends here
