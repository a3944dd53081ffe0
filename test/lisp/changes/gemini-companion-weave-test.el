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
         (append (gemini-companion-weave-text-before look (memql edit ids)) nil))
        (gemini-companion-weave-test-differs
         "state of an edit" state
         (symbol-name (gemini-companion-weave-edit-state
                       actual (gemini-companion-weave-hunks weave (list edit)))))))))

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
                           (gemini-companion-weave-hunks weave (list edit)))))))
          (`("keep" ,names ,now ,left)
           (gemini-companion-weave-test-differs
            "left" left
            (gemini-companion-weave-test-names
             (gemini-companion-weave-keep
              (gemini-companion-weave-look weave (vconcat now)) (named names)))))
          (`("unkeep" ,names)
           (gemini-companion-weave-unkeep (named names)))
          (`("conflicts" ,names ,now ,found)
           (gemini-companion-weave-test-differs
            "conflicts" found
            (gemini-companion-weave-test-names
             (gemini-companion-weave-conflicts
              (gemini-companion-weave-look weave (vconcat now)) (named names)))))
          (`("undo" ,names ,now ,result)
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

(provide 'gemini-companion-weave-test)
;;; gemini-companion-weave-test.el ends here
