;;; gemini-companion-weave-test.el --- Tests of who wrote which line  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The judge is test/model/file_model.py, which exports sequences of writes, decisions
;; and texts with all answers.  GC_WEAVE_SEQUENCES is their number, 200 if it is unset.

;;; Code:

(require 'ert)
(require 'gemini-companion-test-helper)
(require 'gemini-companion-weave)

(defconst gemini-companion-weave-test-model
  (expand-file-name "test/model/file_model.py" gemini-companion-test-root)
  "The program that exports sequences.")

;;;; Answers that only the model has

(defun gemini-companion-weave-test-hunks (weave &optional edits)
  "Return the hunks of EDITS, a list, that WEAVE has, or all if that is nil."
  (let ((seen (make-hash-table :test 'eq))
        (hunks nil))
    (cl-loop for line across (gemini-companion-weave-lines weave)
             for marks = (gemini-companion-weave--marks line)
             unless (eq marks gemini-companion-weave--base)
             do (dolist (mark marks)
                  (let* ((hunk (gemini-companion-weave-mark-hunk mark))
                         (edit (gemini-companion-weave-hunk-edit hunk)))
                    (when (and edit
                               (not (gethash hunk seen))
                               (or (null edits) (memql edit edits)))
                      (puthash hunk t seen)
                      (push hunk hunks)))))
    (nreverse hunks)))

(defun gemini-companion-weave-test-text-before (look edits)
  "Return the text of LOOK without EDITS, a list: an edit and all later ones.
What others have done since stays.  The value is a vector of lines."
  (gemini-companion-weave-text-without
   look (gemini-companion-weave-test-hunks look edits)))

(defun gemini-companion-weave-test-edit-state (states hunks)
  "Return what is left of an edit with HUNKS, from STATES of all hunks."
  (let ((these (delq nil (mapcar (lambda (hunk) (gethash hunk states)) hunks))))
    (cond ((seq-every-p (apply-partially #'eq 'there) these) 'there)
          ((or (memq 'there these) (memq 'partly these)) 'partly)
          (t (seq-find (lambda (state) (memq state these))
                       '(undone gone superseded))))))

(defun gemini-companion-weave-test-keep (look hunks)
  "Record that HUNKS were reviewed, and return those that were not.
In LOOK, they are on top of others that were not reviewed."
  (let ((left nil)
        (wanted (gemini-companion-weave--set
                 (seq-remove #'gemini-companion-weave-hunk-reviewed hunks)))
        (more t))
    (while more
      (setq more nil)
      (let ((now nil))
        (cl-loop
         for line across (gemini-companion-weave-lines look)
         for marks = (gemini-companion-weave--marks line)
         when (and (cdr marks) (not (gemini-companion-weave--gone-p marks)))
         do (cl-loop for (hunk . under) on (gemini-companion-weave--left marks)
                     when (and (gethash hunk wanted)
                               (cl-loop for other in under
                                        thereis (not (gethash other wanted))))
                     do (cl-pushnew hunk now)))
        (dolist (hunk now)
          (remhash hunk wanted)
          (push hunk left)
          (setq more t))))
    (maphash (lambda (hunk _)
               (setf (gemini-companion-weave-hunk-reviewed hunk) 'kept))
             wanted)
    left))

(defun gemini-companion-weave-test-unkeep (hunks)
  "Record that HUNKS were not reviewed."
  (dolist (hunk hunks)
    (setf (gemini-companion-weave-hunk-reviewed hunk) nil)))

;;;; The judge

(defun gemini-companion-weave-test-names (hunks)
  "Return the edits and numbers of HUNKS, sorted."
  (sort (mapcar (lambda (hunk)
                  (list (gemini-companion-weave-hunk-edit hunk)
                        (gemini-companion-weave-hunk-number hunk)))
                hunks)
        (lambda (a b)
          (or (< (car a) (car b))
              (and (= (car a) (car b)) (< (cadr a) (cadr b)))))))

(defun gemini-companion-weave-test-differs (what expected actual)
  "Signal an error about WHAT unless EXPECTED and ACTUAL are equal."
  (unless (equal expected actual)
    (error "%s: expected %S, not %S" what expected actual)))

(defun gemini-companion-weave-test-check (weave now reviewed changes states edits)
  "Compare the answers of WEAVE about the text NOW with those of the model.
REVIEWED, CHANGES, STATES and EDITS are these."
  (let* ((look (gemini-companion-weave-look weave (vconcat now)))
         (actual (gemini-companion-weave-states look))
         (known nil))
    (gemini-companion-weave-test-differs
     "text" now (append (gemini-companion-weave-text look) nil))
    (gemini-companion-weave-test-differs
     "reviewed" reviewed (append (gemini-companion-weave-text look t) nil))
    (gemini-companion-weave-test-differs
     "changes" changes
     (mapcar (lambda (change)
               (list (gemini-companion-weave-change-start change)
                     (gemini-companion-weave-change-end change)
                     (gemini-companion-weave-change-lines change)
                     (gemini-companion-weave-test-names
                      (gemini-companion-weave-change-hunks change))
                     (sort (copy-sequence (gemini-companion-weave-change-edits change))
                           #'<)
                     (and (gemini-companion-weave-change-mixed change) t)))
             (gemini-companion-weave-changes look)))
    (maphash (lambda (hunk state)
               (push (append (car (gemini-companion-weave-test-names (list hunk)))
                             (list (symbol-name state)))
                     known))
             actual)
    (gemini-companion-weave-test-differs
     "states" states
     (sort known (lambda (a b) (or (< (car a) (car b))
                                   (and (= (car a) (car b)) (< (cadr a) (cadr b)))))))
    (let ((ids (mapcar #'car edits)))
      (pcase-dolist (`(,edit ,before ,state) edits)
        (gemini-companion-weave-test-differs
         "before an edit" before
         (append (gemini-companion-weave-test-text-before look (memql edit ids)) nil))
        (gemini-companion-weave-test-differs
         "state of an edit" state
         (symbol-name (gemini-companion-weave-test-edit-state
                       actual (gemini-companion-weave-test-hunks weave (list edit)))))))))

(defun gemini-companion-weave-test-replay (entries)
  "Replay ENTRIES of the model; signal an error if an answer differs."
  (let ((weave nil)
        (all nil))
    (cl-flet ((named (names)
                (seq-filter (lambda (hunk)
                              (member (car (gemini-companion-weave-test-names
                                            (list hunk)))
                                      names))
                            all)))
      (dolist (call entries)
        (pcase call
          (`("base" ,text)
           (setq weave (gemini-companion-weave-start (vconcat text))))
          (`("write" ,edit ,before ,accepted ,after ,reviewed)
           (pcase-let ((`(,next . ,hunks)
                        (gemini-companion-weave-write
                         weave edit (vconcat before) (vconcat after)
                         :accepted (and accepted (vconcat accepted)))))
             (setq weave next
                   all (append hunks all))
             (gemini-companion-weave-test-differs
              "accepted" reviewed
              (gemini-companion-weave-test-names
               (seq-filter #'gemini-companion-weave-hunk-reviewed
                           (gemini-companion-weave-test-hunks weave (list edit)))))))
          (`("keep" ,names ,now ,left)
           (gemini-companion-weave-test-differs
            "left" left
            (gemini-companion-weave-test-names
             (gemini-companion-weave-test-keep
              (gemini-companion-weave-look weave (vconcat now)) (named names)))))
          (`("unkeep" ,names)
           (gemini-companion-weave-test-unkeep (named names)))
          (`("conflicts" ,names ,now ,found)
           (gemini-companion-weave-test-differs
            "conflicts" found
            (gemini-companion-weave-test-names
             (gemini-companion-weave-conflicts
              (gemini-companion-weave-look weave (vconcat now)) (named names)))))
          (`("undo" ,names ,now ,result)
           (gemini-companion-weave-test-differs
            "without" result
            (append (gemini-companion-lines-without
                     (gemini-companion-weave-changes-without
                      (gemini-companion-weave-look weave (vconcat now))
                      (named names))
                     (vconcat now))
                    nil))
           (setq weave (gemini-companion-weave-undo weave (named names) (vconcat now)))
           (gemini-companion-weave-test-differs
            "undone" result (append (gemini-companion-weave-text weave) nil)))
          (`("restore" ,names ,now)
           (setq weave (gemini-companion-weave-restore weave (named names)
                                                       (vconcat now))))
          (`("check" . ,answers)
           (apply #'gemini-companion-weave-test-check weave answers))
          (_ (error "Unknown call %S" call)))))))

(ert-deftest gemini-companion-weave-answers-as-the-model ()
  (let ((count (or (getenv "GC_WEAVE_SEQUENCES") "200"))
        (python (or (getenv "GC_PYTHON") (executable-find "python3")))
        (wrong nil)
        (n 0))
    (with-temp-buffer
      (should (eql 0 (let ((coding-system-for-read 'utf-8))
                       (call-process python nil '(t nil) nil
                                     gemini-companion-weave-test-model "export" count))))
      (goto-char (point-min))
      (while (not (eobp))
        (condition-case error
            (gemini-companion-weave-test-replay
             (json-parse-buffer :array-type 'list :null-object nil :false-object nil))
          (error (push (list n (error-message-string error)) wrong)))
        (skip-chars-forward "\n")
        (setq n (1+ n))))
    (should (equal (string-to-number count) n))
    (should-not (seq-take (nreverse wrong) 3))))

(ert-deftest gemini-companion-weave-knows-lines-in-later-weaves ()
  :tags '(pure)
  (let* ((weave (gemini-companion-weave-start ["a\n" "}\n" "b\n" "}\n"]))
         (write (lambda (edit before after)
                  (setq weave (car (gemini-companion-weave-write
                                    weave edit before after)))))
         (first ["a\n" "}\n" "b\n" "}\n" "c\n" "}\n"])
         known base)
    (funcall write 'one ["a\n" "}\n" "b\n" "}\n"] first)
    (setq known (gemini-companion-weave-identities weave 4 2)
          base (gemini-companion-weave-identities weave 1 1))
    (should (= 4 (gemini-companion-weave-index weave known)))
    ;; Another edit writes above, and others write below.
    (funcall write 'two (vconcat first ["z\n"]) (vconcat ["}\n" "x\n"] first ["z\n"]))
    (should (= 6 (gemini-companion-weave-index weave known)))
    (should (= 3 (gemini-companion-weave-index weave base)))
    ;; It removes them, the user undoes that.
    (let ((hunks (cdr (gemini-companion-weave-write
                       weave 'three (gemini-companion-weave-text weave) first)))
          (text (gemini-companion-weave-text weave)))
      (ignore hunks)
      (let ((made (gemini-companion-weave-write weave 'three text ["a\n" "}\n"])))
        (should-not (gemini-companion-weave-index (car made) known))
        (should (= 6 (gemini-companion-weave-index
                      (gemini-companion-weave-undo (car made) (cdr made)
                                                   ["a\n" "}\n"])
                      known)))))
    ;; A line between them.
    (funcall write 'four (gemini-companion-weave-text weave)
             ["a\n" "}\n" "b\n" "}\n" "c\n" "d\n" "}\n"])
    (should-not (gemini-companion-weave-index weave known))))

;; The list said that a hunk of the first edit was undone.
(ert-deftest gemini-companion-weave-restores-what-was-superseded ()
  :tags '(pure)
  (pcase-let* ((before ["a\n" "b\n"])
               (written ["a\n" "one\n" "b\n"])
               (after ["a\n" "two\n" "b\n"])
               (`(,weave . ,first) (gemini-companion-weave-write
                                    (gemini-companion-weave-start before)
                                    'one before written))
               (`(,weave . ,second) (gemini-companion-weave-write
                                     weave 'two written after))
               (hunks (append first second))
               (states (lambda (weave)
                         (let ((states (gemini-companion-weave-states weave)))
                           (mapcar (lambda (hunk) (gethash hunk states)) hunks)))))
    (should (equal '(superseded there) (funcall states weave)))
    (let ((undone (gemini-companion-weave-undo weave hunks after)))
      (should (equal '(undone undone) (funcall states undone)))
      (should (equal '(superseded there)
                     (funcall states (gemini-companion-weave-restore undone hunks
                                                                     after)))))))

(provide 'gemini-companion-weave-test)
;;; gemini-companion-weave-test.el ends here
