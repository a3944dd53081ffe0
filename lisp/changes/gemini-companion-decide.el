;;; gemini-companion-decide.el --- Deciding about several files by one command  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A command that keeps, undoes, takes back or redoes makes a plan: a list of items, one
;; for each file or edit.  An item has a step, or the reason why there is none.  All else
;; is done here and in `gemini-companion-decision', and only there: ask once about all that
;; the user has to know, do the steps one after another, record them as one decision, and
;; say once what was done, what was not and why, and what is left.
;;
;; What is planned is what is done: an item tells whether the text of its file is still
;; that for which its step was planned.  If not, the step is not done, and that is said.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-slices)
(require 'gemini-companion-step)
(require 'gemini-companion-text)
(require 'gemini-companion-trash)

;;;; Plans

(cl-defstruct (gemini-companion-decide-item
               (:noinline t)
               (:constructor gemini-companion-decide-item)
               (:copier nil))
  "What a command does in the file NAME.
STEP is the step, or nil if that is impossible for the REASON, a sentence, or if
it is planned only when it is its turn, by LATER, a function that returns another
item.  CURRENT is a function that returns non-nil while the file has the text for
which STEP was planned.  COUNT is the number of what is decided, such as changes.

What the user has to know before that: OTHERS is how many lines of others are
undone, DELETES is the name of the file if it is deleted, as it was new, and
CONCERN is nil or a cons of a statement and of what to do all the same.  REMOTE
is non-nil if STEP ends later, as on another host: these come last, one after
another.

DONE is a function that is called once STEP is done, and returns what was done, a
text."
  name step reason later (current #'always) (count 1) (others 0) deletes concern remote
  (done #'ignore))

(defmacro gemini-companion-decide-plan (name &rest body)
  "Return the item that BODY plans in the file NAME.
After a `user-error', return one that is impossible for this reason."
  (declare (indent 1) (debug t))
  `(condition-case problem
       (progn ,@body)
     (user-error
      (gemini-companion-decide-item :name ,name
                                    :reason (gemini-companion-text-problem problem)))))

(defun gemini-companion-decide-of-step (step)
  "Return the item that does STEP, which takes back another one."
  (gemini-companion-decide-item :name (gemini-companion-step-name step) :step step
                                :reason (gemini-companion-step-problem step)))

;;;; Words

(defconst gemini-companion-decide--verbs
  '((undo "Undoing" "Undid" "undone") (keep "Keeping" "Kept" "kept"))
  "Alist of what a plan does, and words for its progress, its end and its failure.")

(defun gemini-companion-decide-word (verb number)
  "Return the word with NUMBER for VERB, `undo' or `keep'."
  (nth number (alist-get verb gemini-companion-decide--verbs)))

(defun gemini-companion-decide-count (items unit)
  "Return how many UNITs ITEMS, or a number, are, a text.
UNIT is `change', `line' or `edit'."
  (let ((count (if (listp items)
                   (apply #'+ (mapcar #'gemini-companion-decide-item-count items))
                 items)))
    (format (pcase unit
              ('line (ngettext "%d line" "%d lines" count))
              ('edit (ngettext "%d edit" "%d edits" count))
              (_ (ngettext "%d change" "%d changes" count)))
            count)))

(defun gemini-companion-decide-say (verb unit all done texts problems left)
  "Return a text that DONE, some of ALL items, were done.
TEXTS are what each of DONE has said, PROBLEMS are why others were not done, and
LEFT are the items at which the user has stopped.  For VERB and UNIT, see
`gemini-companion-decision-do'."
  (let ((unsaved (seq-count (apply-partially #'string-suffix-p ", not saved") texts))
        (files (length done)))
    (concat
     (cond ((null done) (concat "Nothing " (gemini-companion-decide-word verb 2)))
           ((and (null (cdr all)) (car texts)))
           (t (concat (gemini-companion-decide-word verb 1) " "
                      (and (eq unit 'edit) (length< done (length all))
                           (format "%d of " files))
                      (gemini-companion-decide-count (if (eq unit 'edit) all done) unit)
                      (and (eq verb 'undo) (not (eq unit 'edit))
                           (format (ngettext " in %d file" " in %d files" files) files))
                      (cond ((= 0 unsaved) "")
                            ((= unsaved files) ", not saved")
                            (t (format ", %d not saved" unsaved))))))
     (gemini-companion-decide-rest problems left))))

;;;; Asking

(defun gemini-companion-decide--lines-of-others (count)
  "Return a statement and a request about COUNT lines of others, a cons."
  (if (= 1 count)
      '("1 line there is yours or a formatter's" . "undo it as well")
    (cons (format "%d lines there are yours or a formatter's" count)
          "undo them as well")))

(defun gemini-companion-decide--question (items possible rest question)
  "Return what to ask before the POSSIBLE ones of ITEMS are done, or nil.
REST is such as \"undo the rest\".  For QUESTION, see
`gemini-companion-decision-do'."
  (let* ((new (mapcar #'gemini-companion-decide-item-name
                      (seq-filter #'gemini-companion-decide-item-deletes possible)))
         (note (gemini-companion-trash-note
                (delq nil (mapcar #'gemini-companion-decide-item-deletes possible))))
         (others (apply #'+ (mapcar #'gemini-companion-decide-item-others possible)))
         (concerns
          (delq nil
                (append
                 (list (and (length< possible (length items))
                            (cons (concat
                                   (unless question
                                     (format "%d of %d files; " (length possible)
                                             (length items)))
                                   (gemini-companion-decide-reasons items))
                                  rest))
                       (and new (not question)
                            (cons (format (ngettext "%s was new" "%s were new"
                                                    (length new))
                                          (string-join new ", "))
                                  (concat (ngettext "delete it" "delete them"
                                                    (length new))
                                          note)))
                       (and (< 0 others)
                            (gemini-companion-decide--lines-of-others others)))
                 (mapcar #'gemini-companion-decide-item-concern possible))))
         (statements (mapconcat #'car concerns "; ")))
    (cond (question
           (concat (funcall question possible)
                   (and new (cdr items)
                        (format " and delete the new files (%s)%s"
                                (string-join new ", ") note))
                   (and concerns (concat "; " statements))
                   "? "))
          ((null concerns) nil)
          (t
           (format "%s; %s? " statements
                   (if (cdr concerns) "go on" (cdar concerns)))))))

(defun gemini-companion-decide-reasons (items)
  "Return why some of ITEMS are impossible, a text."
  (string-join (delq nil (mapcar #'gemini-companion-decide-item-reason items)) "; "))

(defun gemini-companion-decide-possible (items)
  "Return those of ITEMS that are possible."
  (seq-remove #'gemini-companion-decide-item-reason items))

(defun gemini-companion-decide-agreed (items verb question whole)
  "Return those of ITEMS that are possible, if the user agrees to do them.
Otherwise, or if none is possible, or not each one for a WHOLE decision,
signal a `user-error'.  For VERB and QUESTION, see
`gemini-companion-decision-do'."
  (let ((possible (gemini-companion-decide-possible items)))
    (when (or (null possible)
              (and whole (length< possible (length items))))
      (user-error "%s" (gemini-companion-decide-reasons items)))
    (when-let* ((asked (gemini-companion-decide--question
                        items possible (format "%s the rest" verb) question)))
      (unless (y-or-n-p asked)
        (user-error "Not %s" (gemini-companion-decide-word verb 2))))
    possible))

;;;; Doing

(defun gemini-companion-decide-run (what items do finish &optional whole)
  "Call DO with each of ITEMS and a function, in order; the user can stop.
DO calls that function with nil or a problem, a text, at the end.  WHAT is a
text for the progress.  FINISH is called with the items that are done, with
problems, texts, and with the items that are left, as the user has stopped.
Return its value; or nil if files of other hosts are still to be written, one
after another.
If WHOLE is non-nil, the first problem is an error, and the user cannot stop."
  (let* ((done nil)
         (problems nil)
         (ended nil)
         (value nil)
         (start (lambda (item then)
                  (condition-case problem
                      (progn
                        (gemini-companion-decide--check item)
                        (funcall do item
                                 (lambda (problem)
                                   (if problem (push problem problems) (push item done))
                                   (funcall then))))
                    (error
                     (when whole
                       (signal (car problem) (cdr problem)))
                     (push (gemini-companion-text-problem problem) problems)
                     (funcall then)))))
         (remote (unless whole (seq-filter #'gemini-companion-decide-item-remote items)))
         (here (lambda (item) (funcall start item #'ignore)))
         (left (if whole
                   (mapc here items)
                 (gemini-companion-slices-do what (seq-difference items remote #'eq)
                                             here))))
    (cl-labels ((next ()
                  (if (and remote (null left))
                      (funcall start (pop remote) #'next)
                    (setq ended t
                          value (funcall finish (nreverse done) (nreverse problems)
                                         (append left remote))))))
      (when whole
        (setq left nil))
      (next))
    (and ended value)))

(defun gemini-companion-decide--check (item)
  "Signal an error if the text is not that for which ITEM was planned."
  (unless (funcall (gemini-companion-decide-item-current item))
    (user-error "%s has changed meanwhile; review it again"
                (gemini-companion-decide-item-name item))))

(defun gemini-companion-decide-do (item end)
  "Do the step of ITEM, which is planned now if it was not.
Call END with a problem, or with nil and what was done, a text."
  (let* ((later (gemini-companion-decide-item-later item))
         (planned (if later (funcall later) item)))
    (when-let* ((reason (gemini-companion-decide-item-reason planned)))
      (user-error "%s" reason))
    (when (and later (< 0 (gemini-companion-decide-item-others planned)))
      (user-error "%s has lines of others in this; not undone"
                  (gemini-companion-decide-item-name item)))
    (gemini-companion-step-decide
     (gemini-companion-decide-item-step planned)
     (lambda (problem)
       (if problem
           (let ((name (gemini-companion-decide-item-name item)))
             (funcall end (if (string-prefix-p name problem)
                              problem
                            (format "%s cannot be written (%s)" name problem))))
         (funcall end nil (funcall (gemini-companion-decide-item-done planned))))))))

(defun gemini-companion-decide-rest (problems left)
  "Return the end of a text on what was done: PROBLEMS, and items LEFT."
  (concat (mapconcat (apply-partially #'concat "; ") problems "")
          (and left
               (format "; stopped, %d left" (length left)))))

(provide 'gemini-companion-decide)
;;; gemini-companion-decide.el ends here
