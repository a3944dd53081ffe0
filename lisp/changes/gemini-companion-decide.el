;;; gemini-companion-decide.el --- Deciding about several files by one command  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A command that keeps, undoes, takes back or redoes makes a plan: a list of items, one
;; for each file or edit.  An item has a step, or the reason why there is none.  All else
;; is done here and in `gemini-companion-decision', and only there: ask once about all that
;; the user has to know, do the steps one after another, record them as one decision, and
;; say once what was done, what was not and why, and what is left.  There is a second
;; question only about files that would be gone for good.
;;
;; What is planned is what is done: an item tells whether the text of its file is still
;; that for which its step was planned.  If not, the step is not done, and that is said.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-choice)
(require 'gemini-companion-label)
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

What the user has to know before that: DELETES is what is deleted, a list of
lists of what is moved to the trash as one and of the names of the files in it.
OTHERS is how many lines of others are undone.  CONCERN is nil, or a key of
`gemini-companion-decide--concerns'.  WITHOUT is called with files that the user
does not want to delete for good, and returns an item that leaves them as they
are, or nil if nothing else is to be done.

REMOTE is non-nil if STEP ends later, as on another host: these come last, one
after another.  DONE is a function that is called once STEP is done, and returns
what was done, a text."
  name step reason later (current #'always) (count 1) deletes (others 0) concern
  (without #'ignore) remote (done #'ignore))

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
  "Return the item that does STEP, which takes back another one.
The user knows what it deletes, and is asked only what would be gone for good."
  (gemini-companion-decide-item
   :name (gemini-companion-step-name step) :step step
   :reason (gemini-companion-step-problem step)
   :remote (gemini-companion-step-remote-p step)
   :without (lambda (names)
              (when-let* ((rest (gemini-companion-step-except step names)))
                (gemini-companion-decide-of-step rest)))))

;;;; Words

(defconst gemini-companion-decide--verbs
  '((undo "undo" "Undoing" "Undid" "undone")
    (keep "keep" "Keeping" "Kept" "kept")
    (take-back "take back" "Taking back" "Taken back" "taken back")
    (redo "redo" "Redoing" "Redone" "redone"))
  "Alist of what a plan does, and words: to ask, in progress, at the end, not.")

(defun gemini-companion-decide-word (verb number)
  "Return the word with NUMBER for VERB, see `gemini-companion-decide--verbs'."
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

(defun gemini-companion-decide-requests (verb items unit &optional suffix)
  "Return texts that those of ITEMS that are possible are to be done.
The longest one comes first; all end with SUFFIX.  For VERB and UNIT, see
`gemini-companion-decision-do'."
  (let* ((possible (gemini-companion-decide-possible items))
         (text (concat (gemini-companion-decide-word verb 0) " "
                       (gemini-companion-decide-count possible unit))))
    (mapcar (lambda (text) (concat text suffix))
            (cond ((null (cdr possible)) (list text))
                  ((eq unit 'edit) (list (concat text " as a whole")))
                  (t (list (format "%s in %d files" text (length possible)) text))))))

(defun gemini-companion-decide-say (verb unit all done texts problems left)
  "Return a text that DONE, some of ALL items, were done.
TEXTS are what each of DONE has said, PROBLEMS are why others were not done, or
left out, and LEFT are the items at which the user has stopped.  For VERB and
UNIT, see `gemini-companion-decision-do'."
  (let ((unsaved (seq-count (apply-partially #'string-suffix-p ", not saved") texts))
        (files (length done)))
    (concat
     (cond ((null done) (concat "Nothing " (gemini-companion-decide-word verb 3)))
           ((and (null (cdr all)) (car texts)))
           (t (concat (gemini-companion-decide-word verb 2) " "
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

(defconst gemini-companion-decide-columns 78
  "Maximum width of a question.")

(defconst gemini-companion-decide--most-names 3
  "Maximum number of names in a question.")

(defconst gemini-companion-decide--concerns
  '((changed "undoes lines changed since"
             "lines that the CLI wrote have changed since")
    (line-ends "keeps the line ends"
               "its line ends before are not known, and stay as they are"))
  "Alist of what else the user has to know of a file, in a question and in a list.")

(defun gemini-companion-decide-reasons (items)
  "Return why some of ITEMS are impossible, a text."
  (string-join (gemini-companion-decide--reasons items) "; "))

(defun gemini-companion-decide--reasons (items)
  "Return why some of ITEMS are impossible, a list of texts."
  (gemini-companion-decide--named
   (cl-loop for item in items
            for reason = (gemini-companion-decide-item-reason item)
            when reason collect (cons (gemini-companion-decide-item-name item) reason))))

(defun gemini-companion-decide--named (problems)
  "Return texts of PROBLEMS, a list of (NAME . TEXT), that have all names.
Files with the same problem, such as a host that does not answer, are in one."
  (mapcar (pcase-lambda (`(,text . ,some))
            (let ((names (mapcar #'car some)))
              (if (seq-every-p (lambda (name) (string-search name text)) names)
                  text
                (format "%s: %s" (string-join names ", ") text))))
          (seq-group-by #'cdr problems)))

(defun gemini-companion-decide-possible (items)
  "Return those of ITEMS that are possible."
  (seq-remove #'gemini-companion-decide-item-reason items))

(defun gemini-companion-decide--deletes (item)
  "Return what ITEM deletes, also if it takes back another one."
  (or (gemini-companion-decide-item-deletes item)
      (when-let* ((step (gemini-companion-decide-item-step item)))
        (gemini-companion-step-deletes step))))

(defun gemini-companion-decide--deleted (item)
  "Return an alist from the files that ITEM deletes to their names for the user."
  (pcase (gemini-companion-decide--deletes item)
    ((and `((,file))
          (guard (not (when-let* ((step (gemini-companion-decide-item-step item)))
                        (eq 'several (gemini-companion-step-kind step))))))
     (list (cons file (gemini-companion-decide-item-name item))))
    (deletes
     (mapcar (lambda (file)
               (cons file (gemini-companion-label-file file nil 'plain)))
             (seq-mapcat (lambda (entry) (or (cdr entry) entry)) deletes)))))

(defun gemini-companion-decide--warned-p (item)
  "Return non-nil if the user has to know something before ITEM is done."
  (or (gemini-companion-decide-item-deletes item)
      (< 0 (gemini-companion-decide-item-others item))
      (gemini-companion-decide-item-concern item)))

(defun gemini-companion-decide--warnings (items)
  "Return what the user has to know before ITEMS, a plan, the worst first.
An element is a list of names of files, of what will happen to them, a text to
which their names are added, and of two texts that name none: one with reasons,
or nil, and a short one."
  (let* ((deleted (mapcar #'cdr (seq-mapcat #'gemini-companion-decide--deleted items)))
         (others (seq-filter (lambda (item)
                               (< 0 (gemini-companion-decide-item-others item)))
                             items))
         (lines (apply #'+ (mapcar #'gemini-companion-decide-item-others others)))
         (taken (format (ngettext "takes %d line, maybe yours" "takes %d lines, maybe yours"
                                  lines)
                        lines))
         (left-out (seq-filter #'gemini-companion-decide-item-reason items))
         (leaves (format (ngettext "leaves out %d file" "leaves out %d files"
                                   (length left-out))
                         (length left-out))))
    (seq-filter
     #'car
     `((,deleted "deletes " nil
                 ,(format (ngettext "deletes %d file" "deletes %d files" (length deleted))
                          (length deleted)))
       (,(mapcar #'gemini-companion-decide-item-name others)
        ,(concat taken ", in ") nil ,taken)
       ,@(mapcar (pcase-lambda (`(,concern ,text ,_))
                   (list (cl-loop for item in items
                                  when (eq concern
                                           (gemini-companion-decide-item-concern item))
                                  collect (gemini-companion-decide-item-name item))
                         (concat text " in ") nil text))
                 gemini-companion-decide--concerns)
       (,(mapcar #'gemini-companion-decide-item-name left-out) "leaves out "
        ,(format "%s (%s)" leaves (gemini-companion-decide-reasons left-out))
        ,leaves)))))

(defun gemini-companion-decide--question (items requests width)
  "Return the question whether to do something, and whether it names all, a cons.
REQUESTS are texts about that, the longest one first.  The question has what the
user has to know about ITEMS, a plan, in WIDTH columns."
  (let* ((warnings (gemini-companion-decide--warnings items))
         (say (lambda (statements request)
                (let ((text (concat (and statements
                                         (concat (string-join statements ", ") ": "))
                                    request "?")))
                  (concat (upcase (substring text 0 1)) (substring text 1)))))
         (fits-p (lambda (text) (<= (string-width text) width)))
         (named (mapcar (pcase-lambda (`(,names ,text . ,_))
                          (concat text (string-join names ", ")))
                        warnings))
         (reasons (cl-mapcar (lambda (warning text) (or (nth 2 warning) text))
                             warnings named))
         (short (mapcar (apply-partially #'nth 3) warnings))
         (whole (and (length< (seq-uniq (seq-mapcat #'car warnings))
                              (1+ gemini-companion-decide--most-names))
                     (seq-find fits-p (list (funcall say reasons (car requests))
                                            (funcall say named (car requests)))))))
    (if whole
        (cons whole t)
      (cons (or (seq-find fits-p
                          (cons (funcall say short (car requests))
                                ;; Without the least ones.
                                (cl-loop for count from (length short) downto 1
                                         collect (funcall say
                                                          (append (seq-take short count)
                                                                  (and (nthcdr count short)
                                                                       '("...")))
                                                          (car (last requests))))))
                (gemini-companion-label-fit (list (funcall say short (car requests)))
                                            width))
            nil))))

(defun gemini-companion-decide--list (items verb)
  "Return lines about all ITEMS of a plan to VERB, the worst first, a text."
  (let ((word (gemini-companion-decide-word verb 0))
        (rows nil))
    (dolist (item items)
      (let ((name (gemini-companion-decide-item-name item))
            (others (gemini-companion-decide-item-others item))
            (concern (gemini-companion-decide-item-concern item))
            (deleted (mapcar #'cdr (gemini-companion-decide--deleted item))))
        (if-let* ((reason (gemini-companion-decide-item-reason item)))
            (push (list 3 "leave out" reason) rows)
          (dolist (file deleted)
            (push (list 0 "delete" file) rows))
          (unless (equal deleted (list name))
            (push (list (cond ((< 0 others) 1) (concern 2) (t 4))
                        word
                        (concat name
                                (and (< 0 others)
                                     (format (ngettext
                                              ", with %d line of yours or a formatter's"
                                              ", with %d lines of yours or a formatter's"
                                              others)
                                             others))
                                (and concern
                                     (concat "; " (nth 1 (alist-get
                                                          concern
                                                          gemini-companion-decide--concerns))))))
                  rows)))))
    (mapconcat (pcase-lambda (`(,_ ,word ,text)) (format "  %-10s %s\n" word text))
               (seq-sort-by #'car #'< (nreverse rows)) "")))

(defun gemini-companion-decide--show (text)
  "Display TEXT in a window at the bottom of the frame, and return the window."
  (with-current-buffer (get-buffer-create "*gemini files*")
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert text))
    (goto-char (point-min))
    (special-mode)
    (display-buffer (current-buffer)
                    '((display-buffer-at-bottom)
                      (window-height . fit-window-to-buffer)
                      (category . gemini-companion-question)))))

(defun gemini-companion-decide--hide ()
  "Remove the window of a list of files."
  (when-let* ((buffer (get-buffer "*gemini files*")))
    (quit-windows-on buffer 'kill)
    (when (buffer-live-p buffer)
      (kill-buffer buffer))))

(defun gemini-companion-decide--ask (items verb requests)
  "Ask whether to do REQUESTS with ITEMS, a plan; return `?y', `?s' or `?n'.
The answer `?s' means only those of which there is nothing to know; `?' lists
all.  If the question cannot name what the user has to know, the list is there
at once.  For VERB, see `gemini-companion-decide-word'."
  (let* ((possible (gemini-companion-decide-possible items))
         (warned (seq-count #'gemini-companion-decide--warned-p possible))
         (keys (if (< 0 warned (length possible)) '(?y ?s ?n ??) '(?y ?n ??)))
         (question (gemini-companion-decide--question
                    items requests (- gemini-companion-decide-columns
                                      (* 3 (length keys)) 2)))
         (show (lambda ()
                 (gemini-companion-decide--show
                  (concat (gemini-companion-decide--list items verb)
                          (and (memq ?s keys)
                               (format "s: %s only what needs no warning\n"
                                       (gemini-companion-decide-word verb 0))))))))
    (save-current-buffer
      (unwind-protect
          (let ((key nil))
            (unless (cdr question)
              (funcall show))
            (while (eq ?? (setq key (gemini-companion-choice-key (car question) keys)))
              (funcall show))
            key)
        (gemini-companion-decide--hide)))))

(cl-defun gemini-companion-decide-agreed (items verb requests &key ask whole)
  "Return a cons of those of ITEMS that the user agrees to do, and of texts.
These say which ones are left out.  If none is possible, or not each one of a
WHOLE decision, or the user does not agree, signal a `user-error'.

REQUESTS are texts of what will be done, such as \"undo 2 changes\", the longest
one first.  Ask if ASK is non-nil, or if the user has to know something, once;
and again about what would be gone for good.  For VERB, see
`gemini-companion-decide-word'."
  (let* ((possible (gemini-companion-decide-possible items))
         (left-out (seq-filter #'gemini-companion-decide-item-reason items))
         (not-done (concat "Not " (gemini-companion-decide-word verb 3))))
    (when (or (null possible) (and whole left-out))
      (user-error "%s" (gemini-companion-decide-reasons items)))
    (when (or ask left-out (seq-some #'gemini-companion-decide--warned-p possible))
      (pcase (gemini-companion-decide--ask items verb requests)
        (?s (pcase-dolist (`(,warned . ,some)
                           (seq-group-by (lambda (item)
                                           (and (gemini-companion-decide--warned-p item) t))
                                         possible))
              (if warned
                  (setq left-out (append left-out some))
                (setq possible some))))
        ((pred (/= ?y)) (user-error "%s" not-done))))
    (pcase-let ((`(,agreed . ,kept) (gemini-companion-decide--without-lost possible)))
      (when (or (null agreed) (and whole kept))
        (user-error "%s" not-done))
      (cons agreed (gemini-companion-decide--left-out left-out kept)))))

(defun gemini-companion-decide--left-out (items names)
  "Return texts that ITEMS, and the files NAMES, are left out."
  (let* ((few (length< items (1+ gemini-companion-decide--most-names)))
         (reasons (and few (gemini-companion-decide--reasons items)))
         (names (append (cl-loop for item in items
                                 unless (and few (gemini-companion-decide-item-reason item))
                                 collect (gemini-companion-decide-item-name item))
                        names)))
    (append reasons
            (and names (list (concat "left out: " (string-join names ", ")))))))

(defun gemini-companion-decide--without-lost (items)
  "Return a cons of ITEMS to do, and of names of files that stay.
If a file would be gone for good, as the trash does not get it, ask whether to
delete it; otherwise it stays."
  (let* ((names (seq-mapcat #'gemini-companion-decide--deleted items))
         (entries (seq-mapcat #'gemini-companion-decide--deletes items))
         (lost (cl-loop for (entry . reason)
                        in (gemini-companion-trash-left-out (mapcar #'car entries))
                        append (mapcar (lambda (file)
                                         (list file (cdr (assoc file names)) reason))
                                       (or (cdr (assoc entry entries)) (list entry))))))
    (if (or (null lost)
            (gemini-companion-decide--lose-p
             (mapcar (pcase-lambda (`(,_ ,name ,reason)) (concat name " " reason)) lost)))
        (progn
          (dolist (step (delq nil (mapcar #'gemini-companion-decide-item-step items)))
            (gemini-companion-step-agree step (mapcar #'car lost)))
          (list items))
      (cons (delq nil (mapcar (apply-partially #'gemini-companion-decide--without
                                               (mapcar #'car lost))
                              items))
            (mapcar #'cadr lost)))))

(defun gemini-companion-decide--without (files item)
  "Return ITEM, or one that does not delete FILES, or nil if it does nothing else."
  (if (seq-some (lambda (deleted) (member (car deleted) files))
                (gemini-companion-decide--deleted item))
      (funcall (gemini-companion-decide-item-without item) files)
    item))

(defun gemini-companion-decide--lose-p (texts)
  "Ask whether to delete files for good; TEXTS are their names and the reasons."
  (let ((many (nthcdr gemini-companion-decide--most-names texts)))
    (save-current-buffer
      (unwind-protect
          (progn
            (when many
              (gemini-companion-decide--show
               (mapconcat (apply-partially #'format "  %s\n") texts "")))
            (gemini-companion-choice-yes-or-no-p
             (format "Not to the trash: %s; delete for good? "
                     (if many
                         (format "%d files" (length texts))
                       (string-join texts ", ")))))
        (gemini-companion-decide--hide)))))

;;;; Doing

(defun gemini-companion-decide--in-order (items)
  "Return ITEMS; those that delete a renamed file come last.
Its old name must have its text again before that.  What follows one for the
same file stays behind it."
  (let ((names nil)
        (last nil))
    (dolist (item items)
      (let ((name (gemini-companion-decide-item-name item))
            (step (gemini-companion-decide-item-step item)))
        (when (or (member name names)
                  (and step (gemini-companion-step-renamed step)))
          (push name names)
          (push item last))))
    (append (seq-difference items last #'eq) (nreverse last))))

(defun gemini-companion-decide-run (what items do finish &optional whole)
  "Call DO with each of ITEMS and a function, in order; the user can stop.
DO calls that function with nil or a problem, a text, at the end; later calls
do nothing.  WHAT is a text for the progress.  FINISH is called with the items
that are done, with problems, texts, and with the items that are left, as the
user has stopped.
Return its value; or nil if files of other hosts are still to be written, one
after another.
If WHOLE is non-nil, the first problem is an error, and the user cannot stop."
  (let* ((items (gemini-companion-decide--in-order items))
         (remote (unless whole (seq-filter #'gemini-companion-decide-item-remote items)))
         (left nil)
         (done nil)
         (problems nil)
         (value nil))
    (cl-labels ((start (item then)
                  (let ((waits t))
                    (cl-flet ((end (problem)
                                ;; A host may answer when it is no longer waited for.
                                (when waits
                                  (setq waits nil)
                                  (if problem
                                      (push (cons (gemini-companion-decide-item-name item)
                                                  problem)
                                            problems)
                                    (push item done))
                                  (funcall then))))
                      (condition-case problem
                          (progn
                            (gemini-companion-decide--check item)
                            (funcall do item #'end))
                        (error
                         ;; After its end, it is an error of what follows.
                         (if (or whole (not waits))
                             (signal (car problem) (cdr problem))
                           (end (gemini-companion-text-problem problem))))))))
                (here (item)
                  (start item #'ignore))
                (next ()
                  (if (and remote (null left))
                      (start (pop remote) #'next)
                    (setq value (funcall finish (nreverse done)
                                         (gemini-companion-decide--named
                                          (nreverse problems))
                                         (append left remote))))))
      (if whole
          (mapc #'here items)
        (setq left (gemini-companion-slices-do
                    what (seq-difference items remote #'eq) #'here)))
      (next)
      value)))

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
      (user-error "%s not undone: the changes have lines of others; undo them one by one"
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
