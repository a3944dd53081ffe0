;;; gemini-companion-facts.el --- Who has converted a file  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The weave of a file has its lines; the facts of a file say how the lines are stored:
;; the coding system, the line ends, the byte order mark, and whether the last line has
;; a newline.  A fact has marks, as a line has.  A mark says that a hunk has given the
;; fact a value.  The mark is off if others have changed that value, or if the user has
;; undone the hunk.  The last mark that counts has the value:
;;
;;     marks that count              value that they describe
;;     marks that are on             the known value
;;     marks on, of reviewed hunks   the value without unreviewed changes
;;
;; Facts are never modified, and only writes of CLIs and decisions of the user are
;; recorded; see `gemini-companion-weave'.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-format)
(require 'gemini-companion-weave)

(cl-defstruct (gemini-companion-facts--mark
               (:noinline t)
               (:constructor gemini-companion-facts--mark (hunk value &optional off))
               (:copier nil))
  "A statement that HUNK has given a fact the VALUE.
OFF is nil, `others', `undone' or `both', as in a
`gemini-companion-weave-mark'."
  hunk value off)

;;;; Marks

(defun gemini-companion-facts--last (marks &optional reviewed)
  "Return the value of the last one of MARKS that is on.
If REVIEWED is non-nil, only reviewed hunks count."
  (cl-loop for mark in marks
           unless (or (gemini-companion-facts--mark-off mark)
                      (and reviewed
                           (not (gemini-companion-weave-hunk-reviewed
                                 (gemini-companion-facts--mark-hunk mark)))))
           return (gemini-companion-facts--mark-value mark)))

(defun gemini-companion-facts--with-off (mark off)
  "Return MARK with OFF in that slot."
  (if (eq off (gemini-companion-facts--mark-off mark))
      mark
    (gemini-companion-facts--mark (gemini-companion-facts--mark-hunk mark)
                                  (gemini-companion-facts--mark-value mark)
                                  off)))

(defun gemini-companion-facts--as-others (marks fact value)
  "Return MARKS of FACT after others have given it VALUE.
The last mark with that value counts, and the marks above it are off; if there
is none, others get a new mark.  An unknown value, as of an empty file, is not
VALUE.  An undone mark counts again if its value is back, as when a CLI writes
before the undo was saved; but a newline at the end may be by the user, or by
`require-final-newline'."
  (if (gemini-companion-format-fact-same-p
       fact value (gemini-companion-facts--last marks))
      marks
    (let ((back (cl-find-if
                 (lambda (mark)
                   (let ((known (gemini-companion-facts--mark-value mark)))
                     (and (not (and (eq fact 'open)
                                    (memq (gemini-companion-facts--mark-off mark)
                                          '(undone both))))
                          (not (eq 'unknown known))
                          (gemini-companion-format-fact-same-p fact value known))))
                 marks)))
      (if back
          (let ((above t))
            (mapcar (lambda (mark)
                      (cond ((eq mark back)
                             (setq above nil)
                             (gemini-companion-facts--with-off mark nil))
                            ((and above (null (gemini-companion-facts--mark-off mark)))
                             (gemini-companion-facts--with-off mark 'others))
                            (t mark)))
                    marks))
        (cons (gemini-companion-facts--mark (gemini-companion-weave-hunk-of-others)
                                            value)
              marks)))))

;;;; Recording

(defun gemini-companion-facts-start (format)
  "Return the facts of a file with FORMAT before any edit, an alist.
A key is one of `gemini-companion-format-facts', a value a list of marks, the
last one first."
  (mapcar (lambda (fact)
            (list fact (gemini-companion-facts--mark
                        (gemini-companion-weave-hunk-of-others)
                        (gemini-companion-format-fact format fact))))
          gemini-companion-format-facts))

(defun gemini-companion-facts-look (facts format)
  "Return FACTS as they are for a text with FORMAT, which is nil if unknown."
  (if (null format)
      facts
    (mapcar (pcase-lambda (`(,fact . ,marks))
              (cons fact (gemini-companion-facts--as-others
                          marks fact (gemini-companion-format-fact format fact))))
            facts)))

(defun gemini-companion-facts-write (facts before after hunk-of)
  "Return FACTS after a CLI has converted a file from format BEFORE to AFTER.
Each may be nil if it is unknown.  HUNK-OF is called with each fact that has
changed, and returns its `gemini-companion-weave-hunk'."
  (let ((facts (gemini-companion-facts-look facts before)))
    (if (null after)
        facts
      (mapcar (pcase-lambda (`(,fact . ,marks))
                (let ((value (gemini-companion-format-fact after fact)))
                  (cons fact
                        (cond
                         ((equal value (gemini-companion-facts--last marks))
                          marks)
                         ;; The file was new, or empty: no conversion.
                         ((eq 'unknown (gemini-companion-facts--last marks))
                          (cons (gemini-companion-facts--mark
                                 (gemini-companion-weave-hunk-of-others) value)
                                marks))
                         ((gemini-companion-format-fact-same-p
                           fact value (gemini-companion-facts--last marks))
                          marks)
                         (t (cons (gemini-companion-facts--mark
                                   (funcall hunk-of fact) value)
                                  marks))))))
              facts))))

(defun gemini-companion-facts-set-undone (facts hunks undone)
  "Return FACTS after the user has undone HUNKS.
If UNDONE is nil, the user has taken that undo back."
  (mapcar (pcase-lambda (`(,fact . ,marks))
            (cons fact
                  (mapcar (lambda (mark)
                            (if (memq (gemini-companion-facts--mark-hunk mark) hunks)
                                (gemini-companion-facts--with-off
                                 mark
                                 (pcase (gemini-companion-facts--mark-off mark)
                                   ((or 'others 'both) (if undone 'both 'others))
                                   (_ (and undone 'undone))))
                              mark))
                          marks)))
          facts))

;;;; What is read off

(defun gemini-companion-facts-format (facts &optional reviewed)
  "Return the format that FACTS say; if REVIEWED, without what was not reviewed."
  (gemini-companion-format-of-facts
   (mapcar (pcase-lambda (`(,fact . ,marks))
             (cons fact (gemini-companion-facts--last marks reviewed)))
           facts)))

(defun gemini-companion-facts-hunks (facts)
  "Return the hunks by which FACTS differ from what was reviewed.
Those of one fact are in order, the oldest first.
If they differ, return all hunks of marks that are on and not reviewed: if two
hunks have set a fact, keeping only one would leave a conversion that does not
exist."
  (when (cl-loop for (fact . marks) in facts
                 thereis (not (gemini-companion-format-fact-same-p
                               fact
                               (gemini-companion-facts--last marks)
                               (gemini-companion-facts--last marks 'reviewed))))
    (let ((hunks nil))
      (pcase-dolist (`(,_ . ,marks) facts)
        (dolist (mark (reverse marks))
          (let ((hunk (gemini-companion-facts--mark-hunk mark)))
            (unless (or (gemini-companion-facts--mark-off mark)
                        (gemini-companion-weave-hunk-reviewed hunk))
              (cl-pushnew hunk hunks)))))
      (nreverse hunks))))

(defun gemini-companion-facts-states (facts)
  "Return a table of what is left of each hunk of an edit in FACTS.
For its values, see `gemini-companion-weave-states'."
  (let ((states (make-hash-table :test 'eq)))
    (pcase-dolist (`(,_ . ,marks) facts)
      (let ((above nil))
        (dolist (mark marks)
          (let* ((hunk (gemini-companion-facts--mark-hunk mark))
                 (off (gemini-companion-facts--mark-off mark))
                 (state (cond ((memq off '(undone both)) 'undone)
                              (off 'gone)
                              (above 'superseded)
                              (t 'there)))
                 (old (gethash hunk states)))
            (unless off
              (setq above t))
            (when (gemini-companion-weave-hunk-edit hunk)
              (puthash hunk
                       (cond ((memq old (list nil state)) state)
                             ((or (memq old '(there partly)) (eq state 'there)) 'partly)
                             (t old))
                       states))))))
    states))

(provide 'gemini-companion-facts)
;;; gemini-companion-facts.el ends here
