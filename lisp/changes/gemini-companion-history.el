;;; gemini-companion-history.el --- The history of a file as data  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the next Emacs needs of a file: its record as it is, with all marks, and the
;; edits that have written it, each with the bytes before it and the text after it.
;; These are lists, strings and numbers, which can be printed.
;;
;; The texts of edits are similar, so each is saved as what differs from the previous
;; one: how many bytes are equal at its beginning and its end, and the text in between.

;;; Code:

(require 'cl-lib)
(require 'map)
(require 'gemini-companion-changes)
(require 'gemini-companion-content)
(require 'gemini-companion-edit)
(require 'gemini-companion-format)
(require 'gemini-companion-record)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)

(defvar gemini-companion-history--turns nil
  "Alist from keys to the turns of restored edits.")

(defun gemini-companion-history-forget-turns ()
  "Forget the turns of restored edits."
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
               (texts (gemini-companion-history--texts
                       (seq-mapcat #'gemini-companion-history--texts-of
                                   (reverse edits)))))
    (list :path (gemini-companion-changes-file-path record)
          :new (gemini-companion-changes-file-new record)
          :edits (nreverse
                  (mapcar (lambda (edit)
                            (gemini-companion-history--edit
                             edit (pop texts) (pop texts)))
                          (reverse edits)))
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

(defun gemini-companion-history--texts-of (edit)
  "Return the bytes before and after EDIT, a list; these may be a symbol."
  (list (gemini-companion-content-bytes (gemini-companion-edit-content edit))
        (encode-coding-string (gemini-companion-edit-after edit)
                              'utf-8-emacs-unix)))

(defun gemini-companion-history--edit (edit before after)
  "Return the data of EDIT, a plist.
For BEFORE and AFTER, see `gemini-companion-history--texts'."
  (let ((turn (gemini-companion-edit-turn edit))
        (written (gemini-companion-edit-format edit)))
    (list :before before
          :after after
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
          :decision (gemini-companion-edit-decision edit)
          :state (gemini-companion-edit-file-state edit)
          :remarks (gemini-companion-edit-remarks edit)
          :modes (gemini-companion-edit-deleted-modes edit)
          :missing (gemini-companion-edit-missing-directories edit)
          :prompt (and turn (gemini-companion-turn-prompt turn))
          :began (and turn (gemini-companion-turn-began turn))
          :ended (and turn (gemini-companion-turn-ended turn)))))

;;;; Texts

(defun gemini-companion-history--texts (texts)
  "Return each of TEXTS, unibyte strings, as what differs from the previous one.
That is (HEAD TAIL TEXT): HEAD bytes of the previous text, TEXT, and the last
TAIL bytes of the previous text.  A symbol in TEXTS stays."
  (let ((previous ""))
    (mapcar (lambda (text)
              (if (symbolp text)
                  text
                (prog1 (gemini-companion-history--difference previous text)
                  (setq previous text))))
            texts)))

(defun gemini-companion-history--difference (a b)
  "Return (HEAD TAIL TEXT), by which B differs from A; both are unibyte."
  (let* ((most (min (length a) (length b)))
         (head (gemini-companion-history--greatest
                most (lambda (n) (equal (substring a 0 n) (substring b 0 n)))))
         ;; TEXT begins and ends between two characters.
         (head (if (gemini-companion-history--inside-p b head)
                   (gemini-companion-history--before-character b head)
                 head))
         (tail (gemini-companion-history--greatest
                (- most head)
                (lambda (n)
                  (equal (substring a (- (length a) n)) (substring b (- (length b) n)))))))
    (while (gemini-companion-history--inside-p b (- (length b) tail))
      (cl-decf tail))
    (list head tail
          (decode-coding-string (substring b head (- (length b) tail))
                                'utf-8-emacs-unix))))

(defun gemini-companion-history--greatest (most same-p)
  "Return the greatest number up to MOST that satisfies SAME-P, or 0.
All smaller ones do."
  (let ((low 0)
        (high (1+ most)))
    (while (< 1 (- high low))
      (let ((n (/ (+ low high) 2)))
        (if (funcall same-p n) (setq low n) (setq high n))))
    low))

(defun gemini-companion-history--inside-p (bytes n)
  "Return non-nil if the index N of BYTES, UTF-8, is inside of a character."
  (and (< n (length bytes))
       (= #x80 (logand #xc0 (aref bytes n)))))

(defun gemini-companion-history--before-character (bytes n)
  "Return the index where the character of BYTES begins that N is inside of."
  (while (and (< 0 n) (gemini-companion-history--inside-p bytes n))
    (cl-decf n))
  n)

(defun gemini-companion-history--text (previous difference)
  "Return the text, unibyte, of DIFFERENCE from PREVIOUS."
  (pcase-let ((`(,head ,tail ,text) difference))
    (concat (substring previous 0 head)
            (encode-coding-string text 'utf-8-emacs-unix)
            (substring previous (- (length previous) tail)))))

;;;; Restoring

(defun gemini-companion-history-restore (name data)
  "Restore the record of the file NAME, a true name, from DATA, and return it.
Signal an error if that is impossible."
  (pcase-let* (((map :path :new :edits :record :writes :owned :unsaved) data)
               (previous "")
               (all (nreverse
                     (mapcar (lambda (facts)
                               (pcase-let ((`(,edit . ,bytes)
                                            (gemini-companion-history--edit-of
                                             name facts previous)))
                                 (setq previous bytes)
                                 edit))
                             (reverse edits))))
               (`(,lines . ,hunks) (gemini-companion-record-of-data record all))
               (hunk (apply-partially #'aref hunks)))
    (unless (equal name (gemini-companion-text-true-name
                         (or path (gemini-companion-edit-file (car all)))))
      (error "It is another file now"))
    (when (gemini-companion-changes-of-file name)
      (error "Another file had this name"))
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

(defun gemini-companion-history--edit-of (name facts previous)
  "Return the edit of the file NAME with FACTS, and the bytes after it, a cons.
PREVIOUS are the bytes from which its texts differ."
  (pcase-let* (((map :before :after :reported :format :file :session :since :command
                     :decision :state :remarks :modes :missing)
                facts)
               (before (if (symbolp before)
                           before
                         (setq previous (gemini-companion-history--text
                                         previous before))))
               (bytes (gemini-companion-history--text previous after))
               (after (decode-coding-string bytes 'utf-8-emacs-unix)))
    (cons (gemini-companion-edit-make
           :id (gensym) :session (gemini-companion-session-from-facts session)
           :file file :true-name name :since since
           :content (gemini-companion-content-make :bytes before :reported reported)
           :proposed after :after after :command command :decision decision
           :file-state state :remarks remarks :deleted-modes modes
           :missing-directories missing :reported t
           :format (pcase format
                     (`(,coding ,mark ,ends)
                      (gemini-companion-format-make
                       :coding coding :mark mark :ends ends)))
           :turn (gemini-companion-history--turn facts))
          bytes)))

(defun gemini-companion-history--turn (facts)
  "Return the turn of the edit with FACTS, the same for all edits of a turn."
  (pcase-let* (((map :session :since :prompt :began :ended) facts)
               (key (list (plist-get session :id) (or began since))))
    (or (alist-get key gemini-companion-history--turns nil nil #'equal)
        (setf (alist-get key gemini-companion-history--turns nil nil #'equal)
              (gemini-companion-turn-make
               :prompt prompt :began (or began since) :ended (or ended since))))))

(provide 'gemini-companion-history)
;;; gemini-companion-history.el ends here
