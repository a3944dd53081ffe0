;;; gemini-companion-history.el --- The history of a file as data  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the next Emacs needs of a file: its record as it is, with all acts, and the
;; edits that have written it, each with the bytes before it and the text after it.
;; These are lists, strings and numbers, which can be printed.
;;
;; The texts of edits are similar, so each is saved as the lines that differ from the
;; previous one.  These are compared once for each edit.

;;; Code:

(require 'cl-lib)
(require 'map)
(require 'gemini-companion-changes)
(require 'gemini-companion-content)
(require 'gemini-companion-edit)
(require 'gemini-companion-format)
(require 'gemini-companion-hunk)
(require 'gemini-companion-record)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)

(defvar gemini-companion-history--turns nil
  "Alist from keys to the turns of restored edits.")

(defun gemini-companion-history-forget-turns ()
  "Forget in which turn each restored edit was."
  (setq gemini-companion-history--turns nil))

;;;; Data

(defun gemini-companion-history-data (record)
  "Return RECORD as data that can be printed."
  (pcase-let* ((writes (gemini-companion-changes-writes record))
               (edits (seq-uniq
                       (append (gemini-companion-changes-file-edits record)
                               (mapcar #'car writes))
                       #'eq))
               (`(,data . ,numbers)
                (gemini-companion-record-data
                 (gemini-companion-changes-file-lines record)
                 (seq-mapcat #'caddr writes) edits))
               (number (lambda (hunk) (gethash hunk numbers)))
               (seen (gemini-companion-changes-seen record nil))
               (previous ""))
    (list :path (gemini-companion-changes-file-path record)
          :new (gemini-companion-changes-file-new record)
          :edits (mapcar (lambda (edit)
                           (prog1 (gemini-companion-history--edit edit previous)
                             (setq previous (gemini-companion-edit-after edit))))
                         (reverse edits))
          :record data
          :writes (mapcar (pcase-lambda (`(,edit ,after ,hunks))
                            (list (seq-position edits edit #'eq)
                                  (or (equal after (gemini-companion-edit-after edit))
                                      after)
                                  (mapcar number hunks)))
                          writes)
          :unsaved (mapcar number (gemini-companion-changes-unsaved record))
          :owned (and seen (gemini-companion-record-owned
                            (gemini-companion-changes-seen-look seen))))))

(defun gemini-companion-history--edit (edit previous)
  "Return the data of EDIT, a plist.
For PREVIOUS, see `gemini-companion-history--texts'."
  (let ((turn (gemini-companion-edit-turn edit))
        (written (gemini-companion-edit-format edit)))
    (list :texts (gemini-companion-history--texts edit previous)
          :reported (gemini-companion-content-reported
                     (gemini-companion-edit-content edit))
          :format (and written
                       (list (gemini-companion-format-coding written)
                             (gemini-companion-format-mark written)
                             (gemini-companion-format-ends written)))
          :file (gemini-companion-edit-file edit)
          :session (gemini-companion-session-facts (gemini-companion-edit-session edit))
          :since (gemini-companion-edit-since edit)
          :command (gemini-companion-edit-command edit)
          ;; So it is called in files that were saved before.
          :decision (gemini-companion-edit-answer edit)
          :state (gemini-companion-edit-file-state edit)
          :remarks (gemini-companion-edit-remarks edit)
          :modes (gemini-companion-edit-deleted-modes edit)
          :missing (gemini-companion-edit-missing-directories edit)
          :prompt (and turn (gemini-companion-turn-prompt turn))
          :told (and turn (gemini-companion-turn-reported turn))
          :began (and turn (gemini-companion-turn-began turn))
          :ended (and turn (gemini-companion-turn-ended turn)))))

;;;; Texts

(defvar gemini-companion-history--compared (make-hash-table :test 'eq :weakness 'key)
  "Table from edits to lists (PREVIOUS BYTES AFTER BEFORE-LINES AFTER-LINES).
BYTES are those before the edit, which has written the text AFTER, and PREVIOUS
is the text that the edit before it has written.  BEFORE-LINES are what differs
in BYTES from PREVIOUS, and AFTER-LINES what differs in AFTER from BYTES.")

(defun gemini-companion-history--texts (edit previous)
  "Return what differs in the texts before and after EDIT, a list of two values.
PREVIOUS is the text that the previous edit has written.  See
`gemini-companion-history--difference'; the first value is a symbol if there is
no text before EDIT."
  (let* ((bytes (gemini-companion-content-bytes (gemini-companion-edit-content edit)))
         (after (gemini-companion-edit-after edit))
         (known (gethash edit gemini-companion-history--compared)))
    (unless (and known
                 (eq previous (nth 0 known))
                 (eq bytes (nth 1 known))
                 (eq after (nth 2 known)))
      (let ((before (and (stringp bytes)
                         (decode-coding-string bytes 'utf-8-emacs-unix))))
        (setq known
              (puthash edit
                       (list previous bytes after
                             (if before
                                 (gemini-companion-history--difference previous before)
                               bytes)
                             (gemini-companion-history--difference
                              (or before previous) after))
                       gemini-companion-history--compared))))
    (nthcdr 3 known)))

(defun gemini-companion-history--difference (a b)
  "Return what differs in the text B from A: a list of (FROM TO TEXT).
The lines of A from FROM up to TO, exclusive, are TEXT in B."
  (unless (string= a b)
    (let ((old (gemini-companion-hunk-split a))
          (new (gemini-companion-hunk-split b)))
      (condition-case nil
          (mapcar (lambda (hunk)
                    (list (gemini-companion-hunk-old hunk)
                          (gemini-companion-hunk-old-end hunk)
                          (mapconcat #'identity
                                     (substring new (gemini-companion-hunk-new hunk)
                                                (gemini-companion-hunk-new-end hunk))
                                     "")))
                  (gemini-companion-hunk-compare-lines old new))
        (gemini-companion-text-not-compared
         (list (list 0 (length old) b)))))))

(defun gemini-companion-history--after (lines difference)
  "Return LINES, a vector, with DIFFERENCE, a vector."
  (let ((pieces nil)
        (done 0))
    (pcase-dolist (`(,from ,to ,text) difference)
      (push (substring lines done from) pieces)
      (push (gemini-companion-hunk-split text) pieces)
      (setq done to))
    (apply #'vconcat (nreverse (cons (substring lines done) pieces)))))

;;;; Restoring

(defun gemini-companion-history-restore (name data)
  "Restore the record of the file NAME, a true name, from DATA, and return it.
Signal an error if that is impossible."
  (pcase-let* (((map :path :new :edits :record :writes :owned :unsaved) data)
               (all (gemini-companion-history--edits name edits))
               (`(,lines . ,hunks) (gemini-companion-record-of-data record all))
               (hunk (apply-partially #'aref hunks)))
    (unless (equal name (gemini-companion-text-true-name
                         (or path (gemini-companion-edit-file (car all)))))
      (error "Its name belongs to another file now"))
    (when (gemini-companion-changes-of-file name)
      (error "This Emacs has other changes of the file"))
    (prog1 (gemini-companion-changes-restore
            name lines
            (mapcar (pcase-lambda (`(,n ,after ,hunks . ,_))
                      (let ((edit (elt all n)))
                        (list edit
                              (if (eq after t) (gemini-companion-edit-after edit) after)
                              (mapcar hunk hunks))))
                    writes)
            owned (mapcar hunk unsaved) :path path :new new :edits all)
      (dolist (edit all)
        (when (gemini-companion-changes-unreviewed-p edit)
          (gemini-companion-edit-add-earlier edit))))))

(defun gemini-companion-history--edits (name all)
  "Return new edits of the file NAME, the last one first.
ALL are the data of each, the first one first."
  (let ((lines [])
        (previous "")
        (edits nil))
    (dolist (facts all)
      (pcase-let* ((`(,before ,after) (plist-get facts :texts))
                   (bytes (if (and before (symbolp before))
                              before
                            (setq lines (gemini-companion-history--after lines before))
                            (encode-coding-string (mapconcat #'identity lines "")
                                                  'utf-8-emacs-unix)))
                   (text (mapconcat #'identity
                                    (setq lines (gemini-companion-history--after
                                                 lines after))
                                    ""))
                   (edit (gemini-companion-history--make-edit name facts bytes text)))
        (puthash edit (list previous bytes text before after)
                 gemini-companion-history--compared)
        (push edit edits)
        (setq previous text)))
    edits))

(defun gemini-companion-history--make-edit (name facts before after)
  "Return an edit with FACTS of the file NAME, which has made AFTER of BEFORE.
BEFORE are the bytes, or a symbol, and AFTER is a text."
  (pcase-let (((map :reported :format :file :session :since :command
                    (:decision answer) :state :remarks :modes :missing)
               facts))
    (gemini-companion-edit-make
     :id (gensym) :session (gemini-companion-session-from-facts session)
     :file file :true-name name :since since
     :content (gemini-companion-content-make :bytes before :reported reported)
     :proposed after :after after :command command :answer answer
     :file-state state :remarks remarks :deleted-modes modes
     :missing-directories missing :reported t
     :format (pcase format
               (`(,coding ,mark ,ends)
                (gemini-companion-format-make :coding coding :mark mark :ends ends)))
     :turn (gemini-companion-history--turn facts))))

(defun gemini-companion-history--turn (facts)
  "Return the turn of the edit with FACTS, the same for all edits of a turn."
  (pcase-let* (((map :session :since :prompt :told :began :ended) facts)
               (key (list (plist-get session :id) (or began since))))
    (or (alist-get key gemini-companion-history--turns nil nil #'equal)
        (setf (alist-get key gemini-companion-history--turns nil nil #'equal)
              (gemini-companion-turn-make
               :prompt prompt :reported told :began (or began since) :ended (or ended since))))))

(provide 'gemini-companion-history)
;;; gemini-companion-history.el ends here
