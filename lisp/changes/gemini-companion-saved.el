;;; gemini-companion-saved.el --- Changes left, saved for the next Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What is left to review survives the end of Emacs, even if it is killed.  For each
;; record with changes left, this file saves a chain of texts: the text without these
;; changes, and then the text with those of each edit.  The next Emacs records the
;; edits again from the chain, by the function that records a write.  Lines that others
;; have written since are then theirs, as always.  Other components save their state by
;; a method of `gemini-companion-part-saved'.
;;
;; There is one file for each workspace root, below `gemini-companion-install-directory'.
;; Its first line has the version of the format and the root.  Two lines follow for each
;; entry: its key and its time, and its data, which are read when the entry is restored.
;; A timer writes the file two seconds after a change at most, in slices, and then
;; renames it to its name.  It is read when the root is first used: a file or a terminal
;; there is open, or a CLI connects from there.  An entry is restored when its file is
;; visited or written, and the others when Emacs is idle.
;;
;; Files that are not shared are never saved; the names are checked again before each
;; write, and when the rules have changed.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-changes)
(require 'gemini-companion-content)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-garbage)
(require 'gemini-companion-hunk)
(require 'gemini-companion-idle)
(require 'gemini-companion-install)
(require 'gemini-companion-lines)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-privacy)
(require 'gemini-companion-record)
(require 'gemini-companion-roots)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'map)

;;;; State

(defconst gemini-companion-saved--version 1
  "Version of the format of the files.")

(defconst gemini-companion-saved--most-bytes (* 48 1024 1024)
  "Maximum size of the data of one root.")

(defconst gemini-companion-saved--most-seconds (* 7 24 60 60)
  "Seconds after which an entry that has not changed is dropped.")

(defconst gemini-companion-saved--slice 0.01
  "Seconds for which a timer works at a time.")

(cl-defstruct (gemini-companion-saved--entry
               (:noinline t)
               (:constructor gemini-companion-saved--entry)
               (:copier nil))
  "What is saved of a file, or of a component.
KEY is the true name of the file, or the name of the component, a symbol, and
ROOT the directory in whose file it is saved.  DATA is a unibyte string without
newlines, or nil if there is nothing to save, and TIME is when it was made, in
seconds.  RECORD is that of the file, or t for a component, or nil until it is
restored.  STATE differs, by `equal', once there are other data."
  key root (time (float-time)) data record state)

(defvar gemini-companion-saved--entries nil
  "The entries of the roots whose files were read or will be written.")

(defvar gemini-companion-saved--unread nil
  "Alist of (ROOT . FILE): the files that were not read yet.")

(defvar gemini-companion-saved--used nil
  "The roots whose entries are restored.")

(defvar gemini-companion-saved--changed nil
  "The roots whose files are to be written.")

(defvar gemini-companion-saved--of-others nil
  "The roots whose files another Emacs writes.")

(defvar gemini-companion-saved--due nil
  "Non-nil if something has changed since the last save began.")

(defvar gemini-companion-saved--timer nil
  "The timer that saves, or nil.")

(defvar gemini-companion-saved--work nil
  "The functions that are left to call in the current save, in order.")

(defvar gemini-companion-saved--idle-timer nil
  "The timer that restores entries, or nil.")

(defvar gemini-companion-saved--turns nil
  "Alist of (KEY . TURN), the turns that were restored.")

(defvar gemini-companion-saved--all-files nil
  "Non-nil if the next save must also check the files that were not read.")

;;;; Files

(defun gemini-companion-saved--directory ()
  "Return the directory of the files."
  (expand-file-name "changes/" gemini-companion-install-directory))

(defun gemini-companion-saved--file (root)
  "Return the file for ROOT, such as \"shop-0a1b2c3d4e.eld\"."
  (gemini-companion-names-below
   (gemini-companion-saved--directory)
   (format "%s-%.10s.eld"
           (file-name-nondirectory (directory-file-name root))
           (sha1 root))))

(defun gemini-companion-saved--lock (root)
  "Lock the file of ROOT; return nil if another Emacs has locked it.
Report that once."
  (let ((file (gemini-companion-saved--file root))
        (create-lockfiles t))
    (cond ((member root gemini-companion-saved--of-others) nil)
          ((stringp (file-locked-p file))
           (push root gemini-companion-saved--of-others)
           (message "Another Emacs saves the changes left in %s; those of this \
one are not saved" (abbreviate-file-name root))
           nil)
          (t
           (with-file-modes #o700
             (make-directory (gemini-companion-saved--directory) t))
           (unless (file-locked-p file)
             (lock-file file))
           t))))

(defun gemini-companion-saved--root-of-file (file)
  "Return the root in the header of FILE; delete FILE if it has another format."
  (let ((header (ignore-errors
                  (read (decode-coding-string (gemini-companion-text-bytes file 10000)
                                              'utf-8-emacs)))))
    (pcase header
      (`(gemini-companion-saved ,(pred (eql gemini-companion-saved--version)) ,root)
       root)
      (_
       (message "Saved changes in %s are of another version of gemini-companion; \
deleted" (abbreviate-file-name file))
       (ignore (delete-file file))))))

(defun gemini-companion-saved--find-files ()
  "Find the files, without reading more than their headers."
  (setq gemini-companion-saved--unread
        (cl-loop for file in (ignore-error file-missing
                               (directory-files (gemini-companion-saved--directory)
                                                t "\\`[^.].*\\.eld\\'"))
                 for root = (gemini-companion-log-guarded "Reading saved changes"
                              (gemini-companion-saved--root-of-file file))
                 when root collect (cons root file))))

(defun gemini-companion-saved--read (root)
  "Read the file of ROOT; its entries are not restored yet."
  (let ((file (alist-get root gemini-companion-saved--unread nil nil #'equal)))
    (setf (alist-get root gemini-companion-saved--unread nil 'remove #'equal) nil)
    (when (and file (gemini-companion-saved--lock root))
      (let ((lines (cdr (split-string (gemini-companion-text-bytes file) "\n" t)))
            (dropped 0))
        (while (cdr lines)
          (pcase-let ((`(,key ,time) (gemini-companion-saved--decode (pop lines)))
                      (data (pop lines)))
            (if (< gemini-companion-saved--most-seconds (- (float-time) time))
                (cl-incf dropped)
              (push (gemini-companion-saved--entry
                     :key key :root root :time time :data data)
                    gemini-companion-saved--entries))))
        (when (< 0 dropped)
          (gemini-companion-saved--set-changed root)
          (message "Saved changes of %d files in %s are older than a week; deleted"
                   dropped (abbreviate-file-name root)))))))

(defun gemini-companion-saved--encode (value)
  "Return VALUE printed in one line, a unibyte string."
  (let ((print-escape-newlines t)
        (print-escape-control-characters nil)
        (print-length nil)
        (print-level nil)
        (print-circle nil))
    (encode-coding-string (prin1-to-string value) 'utf-8-emacs-unix)))

(defun gemini-companion-saved--decode (line)
  "Return the value that was printed in LINE, see `gemini-companion-saved--encode'."
  (car (read-from-string (decode-coding-string line 'utf-8-emacs-unix))))

;;;; Chains of texts

(defun gemini-companion-saved--chain (record)
  "Return what is saved of RECORD, a plist, or nil if nothing is left.
`:before' is the text without the changes left.  `:edits' are plists of those
that made them, in order.  The `:after' of an edit is (HEAD TAIL TEXT): the text
after it begins with HEAD lines and ends with TAIL lines of the previous text,
and has TEXT in between.  So is `:now', the text of the file with what others
have written since; it is nil if they have taken away what an edit did."
  (let* ((lines (gemini-companion-changes-file-lines record))
         (edits (reverse
                 (seq-filter
                  (lambda (edit)
                    (seq-some (lambda (hunk)
                                (not (gemini-companion-record-hunk-reviewed hunk)))
                              (cdr (gemini-companion-changes-of edit))))
                  (gemini-companion-changes-file-edits record))))
         (before (gemini-companion-record-text-of-edits lines nil))
         (previous before)
         (with nil))
    (when edits
      (list :path (gemini-companion-changes-path record)
            :new (and (gemini-companion-edit-new-p (car edits)) (seq-empty-p before))
            :before (gemini-companion-saved--text before)
            :edits
            (mapcar (lambda (edit)
                      (push edit with)
                      (let ((after (gemini-companion-record-text-of-edits lines with)))
                        (prog1 (gemini-companion-saved--edit
                                edit (gemini-companion-saved--differing previous after))
                          (setq previous after))))
                    edits)
            :now (when-let* ((now (gemini-companion-saved--now record)))
                   (gemini-companion-saved--differing previous now))))))

(defun gemini-companion-saved--now (record)
  "Return the lines of the file of RECORD if it has all changes left, or nil.
Otherwise, as after a checkout of another branch, they may come back."
  (when-let* ((seen (gemini-companion-changes-seen record nil)))
    (and (seq-every-p
          (lambda (hunk)
            (or (gemini-companion-record-hunk-reviewed hunk)
                (eq 'left (gemini-companion-record-state
                           (gemini-companion-changes-seen-states seen) hunk))))
          (seq-mapcat (lambda (edit) (cdr (gemini-companion-changes-of edit)))
                      (gemini-companion-changes-file-edits record)))
         (gemini-companion-changes-seen-lines seen))))

(defun gemini-companion-saved--text (lines)
  "Return the text of LINES, a vector."
  (apply #'concat (append lines nil)))

(defun gemini-companion-saved--differing (before after)
  "Return (HEAD TAIL TEXT), see `gemini-companion-saved--chain'.
BEFORE and AFTER are vectors of lines."
  (if-let* ((whole (gemini-companion-hunk-whole before after)))
      (list (gemini-companion-hunk-old whole)
            (- (length before) (gemini-companion-hunk-old-end whole))
            (gemini-companion-saved--text
             (substring after (gemini-companion-hunk-new whole)
                        (gemini-companion-hunk-new-end whole))))
    (list (length before) 0 "")))

(defun gemini-companion-saved--edit (edit after)
  "Return what is saved of EDIT, a plist; for AFTER, see above.
For a deletion, `:deleted' is (MODES . BYTES) of the file, in base 64."
  (let ((turn (gemini-companion-edit-turn edit))
        (modes (gemini-companion-edit-deleted-modes edit))
        (bytes (gemini-companion-edit-bytes-before edit)))
    (list :after after
          :deleted (and modes bytes (cons modes (base64-encode-string bytes t)))
          :file (gemini-companion-edit-file edit)
          :session (gemini-companion-session-facts (gemini-companion-edit-session edit))
          :since (gemini-companion-edit-since edit)
          :command (gemini-companion-edit-command edit)
          :missing (gemini-companion-edit-missing-directories edit)
          :prompt (and turn (gemini-companion-turn-prompt turn))
          :began (and turn (gemini-companion-turn-began turn))
          :ended (and turn (gemini-companion-turn-ended turn)))))

(defun gemini-companion-saved--replay (name chain)
  "Record the edits in CHAIN of the file NAME, a true name; return its record.
Signal an error if that is impossible."
  (pcase-let* (((map :path :new :before :edits :now) chain)
               (previous (vconcat (gemini-companion-lines-split before)))
               (format nil))
    (unless (equal name (gemini-companion-text-true-name path))
      (error "It is another file now"))
    (when (gemini-companion-changes-of-file name)
      (error "Another file had this name"))
    (dolist (facts edits)
      (let* ((edit (gemini-companion-saved--edit-of name facts))
             (after (gemini-companion-saved--after previous (plist-get facts :after)))
             (text (gemini-companion-saved--text after)))
        (gemini-companion-edit-texts-set
         edit
         (gemini-companion-content-make
          :bytes (pcase (plist-get facts :deleted)
                   (`(,_ . ,bytes) (base64-decode-string bytes))
                   ((guard (and new (eq facts (car edits)))) 'none)
                   (_ (encode-coding-string (gemini-companion-saved--text previous)
                                            'utf-8-unix)))
          ;; Its line ends are those that the file has, if there is one.
          :reported t)
         text)
        (gemini-companion-edit-texts-record-format edit format)
        (setq format (gemini-companion-edit-format edit))
        (gemini-companion-edit-add-earlier edit)
        (gemini-companion-changes-record edit)
        (setq previous after)))
    (let ((record (gemini-companion-changes-of-file name)))
      (when now
        (gemini-companion-changes-record-others
         record (gemini-companion-saved--after previous now)))
      (gemini-companion-changes-update record)
      record)))

(defun gemini-companion-saved--after (previous after)
  "Return the lines after an edit, a vector.
PREVIOUS are those before; for AFTER, see `gemini-companion-saved--chain'."
  (pcase-let ((`(,head ,tail ,text) after))
    (vconcat (substring previous 0 head)
             (gemini-companion-lines-split text)
             (substring previous (- (length previous) tail)))))

(defun gemini-companion-saved--edit-of (name facts)
  "Return a new edit of the file NAME, a true name, without its texts.
For FACTS, see `gemini-companion-saved--edit'."
  (pcase-let (((map :file :session :since :command :missing :deleted) facts))
    (gemini-companion-edit-make
     :id (gensym) :session (gemini-companion-session-from-facts session)
     :file file :true-name name :since since
     :command command :missing-directories missing :deleted-modes (car deleted)
     :decision 'unreviewed :file-state 'written :reported t
     :turn (gemini-companion-saved--turn facts))))

(defun gemini-companion-saved--turn (facts)
  "Return the turn of the edit with FACTS, the same for all edits of a turn."
  (pcase-let* (((map :session :since :prompt :began :ended) facts)
               (key (list (plist-get session :id) (or began since))))
    (or (alist-get key gemini-companion-saved--turns nil nil #'equal)
        (setf (alist-get key gemini-companion-saved--turns nil nil #'equal)
              (gemini-companion-turn-make
               :prompt prompt :began (or began since) :ended (or ended since))))))

;;;; Entries

(defun gemini-companion-saved--of-key (key &optional root)
  "Return the entry with KEY, if ROOT is non-nil only of ROOT, or nil."
  (seq-find (lambda (entry)
              (and (equal key (gemini-companion-saved--entry-key entry))
                   (or (null root)
                       (equal root (gemini-companion-saved--entry-root entry)))))
            gemini-companion-saved--entries))

(defun gemini-companion-saved--set-changed (root)
  "Record that the file of ROOT is to be written."
  (cl-pushnew root gemini-companion-saved--changed :test #'equal))

(defun gemini-companion-saved--set-data (entry data)
  "Let ENTRY have DATA from now on, or none."
  (unless (equal data (gemini-companion-saved--entry-data entry))
    (setf (gemini-companion-saved--entry-data entry) data
          (gemini-companion-saved--entry-time entry) (float-time))
    (gemini-companion-saved--set-changed (gemini-companion-saved--entry-root entry))))

(defun gemini-companion-saved--drop (entry)
  "Drop ENTRY."
  (gemini-companion-saved--set-data entry nil)
  (setq gemini-companion-saved--entries
        (delq entry gemini-companion-saved--entries)))

(defun gemini-companion-saved--root (name)
  "Return the root in whose file the entry of the file NAME, a true name, is."
  (directory-file-name (or (gemini-companion-roots-innermost name)
                           (file-name-directory name))))

(defun gemini-companion-saved--hidden-p (name)
  "Return non-nil if nothing of the file NAME may be saved.
It is not shared; or it is the copy of a remote file, which ends with Emacs."
  (or (gemini-companion-names-of-copy name)
      (gemini-companion-privacy-name-hidden-p name)))

(defun gemini-companion-saved--add-records ()
  "Add an entry for each record that has none, and drop those of other records."
  (let ((records (gemini-companion-changes-files 'all)))
    (dolist (record (seq-difference
                     records
                     (mapcar #'gemini-companion-saved--entry-record
                             gemini-companion-saved--entries)
                     #'eq))
      (let ((name (gemini-companion-changes-file-name record)))
        (push (gemini-companion-saved--entry
               :key name :root (gemini-companion-saved--root name) :record record)
              gemini-companion-saved--entries)))
    (dolist (entry gemini-companion-saved--entries)
      (let ((record (gemini-companion-saved--entry-record entry)))
        (unless (or (memq record '(nil t)) (memq record records))
          (gemini-companion-saved--drop entry))))))

(defun gemini-companion-saved--state (record)
  "Return a value that differs, by `equal', if RECORD is to be saved again."
  (list (gemini-companion-changes-file-version record)
        (gemini-companion-changes-path record)))

(defun gemini-companion-saved--refresh (entry)
  "Let ENTRY, which is of a file, have the current data of its record.
Drop it if its file is not shared."
  (let ((record (gemini-companion-saved--entry-record entry)))
    (when record
      (setf (gemini-companion-saved--entry-key entry)
            (gemini-companion-changes-file-name record)))
    (cond
     ((gemini-companion-saved--hidden-p (gemini-companion-saved--entry-key entry))
      (if record
          (gemini-companion-saved--set-data entry nil)
        (gemini-companion-saved--drop entry))
      (setf (gemini-companion-saved--entry-state entry) nil))
     (record
      (let ((state (gemini-companion-saved--state record)))
        (unless (equal state (gemini-companion-saved--entry-state entry))
          (let ((chain (gemini-companion-garbage-later
                         (gemini-companion-saved--chain record))))
            (setf (gemini-companion-saved--entry-state entry) state)
            (gemini-companion-saved--set-data
             entry (and chain (gemini-companion-saved--encode chain))))))))))

(defun gemini-companion-saved--refresh-part (part)
  "Let the entries of PART, a component, have its current state."
  (let ((by-root (seq-group-by
                  (lambda (item) (gemini-companion-saved--root (car item)))
                  (seq-remove (lambda (item)
                                (gemini-companion-saved--hidden-p (car item)))
                              (gemini-companion-part-saved part)))))
    (dolist (entry (seq-filter (lambda (entry)
                                 (eq part (gemini-companion-saved--entry-key entry)))
                               gemini-companion-saved--entries))
      (let ((root (gemini-companion-saved--entry-root entry)))
        (if (null (gemini-companion-saved--entry-record entry))
            (gemini-companion-saved--check-part entry)
          (unless (assoc root by-root)
            (gemini-companion-saved--drop entry)))))
    (pcase-dolist (`(,root . ,items) by-root)
      (let ((entry (gemini-companion-saved--of-key part root))
            (state (gemini-companion-saved--encode items)))
        (unless entry
          (setq entry (gemini-companion-saved--entry
                       :key part :root root :record t))
          (push entry gemini-companion-saved--entries))
        ;; Before it is restored, PART would return nothing for it.
        (when (and (gemini-companion-saved--entry-record entry)
                   (not (equal state (gemini-companion-saved--entry-state entry))))
          (setf (gemini-companion-saved--entry-state entry) state)
          (gemini-companion-saved--set-data entry state))))))

(defun gemini-companion-saved--check-part (entry)
  "Drop those items of ENTRY, of a component, that must not be saved."
  (let* ((items (gemini-companion-saved--decode
                 (gemini-companion-saved--entry-data entry)))
         (shared (seq-remove (lambda (item)
                               (gemini-companion-saved--hidden-p (car item)))
                             items)))
    (cond ((null shared) (gemini-companion-saved--drop entry))
          ((length< shared (length items))
           (gemini-companion-saved--set-data
            entry (gemini-companion-saved--encode shared))))))

;;;; Saving

(defun gemini-companion-saved--soon (&rest _)
  "Save what has changed in a second."
  (setq gemini-companion-saved--due t)
  (unless gemini-companion-saved--timer
    (setq gemini-companion-saved--timer
          (run-at-time 1 nil #'gemini-companion-saved--begin))))

(defun gemini-companion-saved--record-changed (record _buffer)
  "Save RECORD, which may be nil, soon if it is to be saved again."
  (when record
    (unless (equal (gemini-companion-saved--state record)
                   (when-let* ((entry (cl-find
                                       record gemini-companion-saved--entries
                                       :key #'gemini-companion-saved--entry-record)))
                     (gemini-companion-saved--entry-state entry)))
      (gemini-companion-saved--soon))))

(defun gemini-companion-saved--check-rules ()
  "Check soon whether all files that are saved are still shared."
  (when (or gemini-companion-saved--entries gemini-companion-saved--unread)
    (setq gemini-companion-saved--all-files t)
    (gemini-companion-saved--soon)))

(defun gemini-companion-saved--begin ()
  "Begin to save what has changed, unless a save is in progress."
  (unless gemini-companion-saved--work
    (setq gemini-companion-saved--due nil
          gemini-companion-saved--work (list #'gemini-companion-saved--plan)))
  (gemini-companion-saved--go-on))

(defun gemini-companion-saved--go-on (&optional at-once)
  "Call the functions that are left in the current save, in slices.
If AT-ONCE is non-nil, call all of them."
  (let ((since (float-time)))
    (while (and gemini-companion-saved--work
                (or at-once
                    (< (- (float-time) since) gemini-companion-saved--slice)))
      (gemini-companion-log-guarded "Saving changes"
        (funcall (pop gemini-companion-saved--work)))))
  (setq gemini-companion-saved--timer nil)
  (cond (at-once)
        (gemini-companion-saved--work
         (setq gemini-companion-saved--timer
               (run-at-time 0 nil #'gemini-companion-saved--go-on)))
        (gemini-companion-saved--due
         (gemini-companion-saved--soon))))

(defun gemini-companion-saved--plan ()
  "Plan a save: first all data are made, and then the files."
  ;; No hook runs when another program writes an ignore file.
  (gemini-companion-privacy-refresh 'if-changed)
  (when gemini-companion-saved--all-files
    (setq gemini-companion-saved--all-files nil)
    (dolist (unread (copy-sequence gemini-companion-saved--unread))
      (gemini-companion-saved--read (car unread))))
  (gemini-companion-saved--add-records)
  (setq gemini-companion-saved--work
        (append
         (cl-loop for entry in gemini-companion-saved--entries
                  unless (symbolp (gemini-companion-saved--entry-key entry))
                  collect (apply-partially #'gemini-companion-saved--refresh entry))
         (mapcar (lambda (part)
                   (apply-partially #'gemini-companion-saved--refresh-part part))
                 (seq-uniq
                  (append (gemini-companion-parts-loaded)
                          (and (featurep 'gemini-companion-comment-opening)
                               '(comment-opening))
                          (seq-filter #'symbolp
                                      (mapcar #'gemini-companion-saved--entry-key
                                              gemini-companion-saved--entries)))))
         (list #'gemini-companion-saved--plan-files))))

(defun gemini-companion-saved--plan-files ()
  "Plan to write the files of the roots that have changed."
  (dolist (root gemini-companion-saved--changed)
    (when (gemini-companion-saved--lock root)
      (setq gemini-companion-saved--work
            (append gemini-companion-saved--work
                    (gemini-companion-saved--plan-file root)))))
  (setq gemini-companion-saved--changed nil))

(defun gemini-companion-saved--plan-file (root)
  "Return functions to call, in order, to write or delete the file of ROOT.
If there are too many data, the oldest entries are left out."
  (let* ((file (gemini-companion-saved--file root))
         (draft (concat file ".new"))
         (size 0)
         (left-out nil)
         (entries
          (seq-filter
           (lambda (entry)
             (cl-incf size (length (gemini-companion-saved--entry-data entry)))
             (or (<= size gemini-companion-saved--most-bytes)
                 (ignore (push (gemini-companion-saved--entry-key entry) left-out))))
           (seq-sort-by
            #'gemini-companion-saved--entry-time #'>
            (seq-filter (lambda (entry)
                          (and (equal root (gemini-companion-saved--entry-root entry))
                               (gemini-companion-saved--entry-data entry)))
                        gemini-companion-saved--entries)))))
    (when left-out
      (message "Changes left in %s are not saved for the next Emacs: more than %d MB"
               (mapconcat (lambda (key) (format "%s" key)) left-out ", ")
               (/ gemini-companion-saved--most-bytes 1024 1024)))
    (if (null entries)
        (list (lambda ()
                (delete-file file)
                ;; An Emacs that was killed may have left it.
                (delete-file draft)))
      (gemini-companion-saved--until-failed
       root
       (list (lambda ()
               (with-file-modes #o600
                 (gemini-companion-text-write
                  draft (concat (gemini-companion-saved--encode
                                 (list 'gemini-companion-saved
                                       gemini-companion-saved--version root))
                                "\n")))))
       (mapcar (lambda (entry)
                 (let ((text (concat
                              (gemini-companion-saved--encode
                               (list (gemini-companion-saved--entry-key entry)
                                     (gemini-companion-saved--entry-time entry)))
                              "\n" (gemini-companion-saved--entry-data entry) "\n")))
                   (lambda () (gemini-companion-saved--append draft text))))
               entries)
       (list (lambda () (rename-file draft file t)))))))

(defun gemini-companion-saved--until-failed (root &rest lists)
  "Return functions that call those in LISTS in order, until one has failed.
Then the file of ROOT stays as it is, and is written by the next save."
  (let ((failed nil))
    (mapcar (lambda (step)
              (lambda ()
                (unless failed
                  (setq failed t)
                  (gemini-companion-saved--set-changed root)
                  (funcall step)
                  (setq failed nil
                        gemini-companion-saved--changed
                        (delete root gemini-companion-saved--changed)))))
            (apply #'append lists))))

(defun gemini-companion-saved--append (file bytes)
  "Append BYTES to FILE."
  (let ((file-name-handler-alist nil)
        (coding-system-for-write 'no-conversion)
        (write-region-inhibit-fsync t)
        (create-lockfiles nil))
    (write-region bytes nil file 'append 'silent)))

(defun gemini-companion-saved--save-now ()
  "Save what has changed, without slices."
  (when (or gemini-companion-saved--due gemini-companion-saved--work
            gemini-companion-saved--changed)
    ;; A draft of a file that is half written is written again.
    (when gemini-companion-saved--work
      (dolist (entry gemini-companion-saved--entries)
        (gemini-companion-saved--set-changed
         (gemini-companion-saved--entry-root entry))))
    (setq gemini-companion-saved--work (list #'gemini-companion-saved--plan))
    (gemini-companion-saved--go-on 'at-once)))

;;;; Restoring

(defun gemini-companion-saved--roots ()
  "Return the roots of which something is saved."
  (seq-uniq (append (mapcar #'car gemini-companion-saved--unread)
                    (mapcar #'gemini-companion-saved--entry-root
                            gemini-companion-saved--entries))))

(defun gemini-companion-saved--use (name)
  "Restore what is saved of the roots that contain the file or directory NAME.
A directory has a slash at its end."
  (dolist (root (gemini-companion-saved--roots))
    (when (and (not (member root gemini-companion-saved--used))
               (gemini-companion-text-in-directory-p
                name (file-name-as-directory root)))
      (push root gemini-companion-saved--used)
      (gemini-companion-saved--read root)
      (gemini-companion-saved--restore-later))))

(defun gemini-companion-saved--use-directories (directories)
  "Restore what is saved of the roots that contain DIRECTORIES, names or nil."
  (dolist (directory (seq-uniq directories))
    (unless (or (null directory) (file-remote-p directory))
      (gemini-companion-saved--use
       (file-name-as-directory (gemini-companion-text-true-name directory))))))

(defun gemini-companion-saved--use-sessions (_previous)
  "Restore what is saved of the roots of the CLIs that are connected."
  (when (gemini-companion-saved--unrestored-p)
    (gemini-companion-saved--use-directories
     (mapcar #'gemini-companion-session-directory
             (seq-remove #'gemini-companion-session-remote
                         (gemini-companion-sessions))))))

(defun gemini-companion-saved--use-buffers ()
  "Restore what is saved of the roots of all buffers."
  (gemini-companion-saved--use-directories
   (mapcar (lambda (buffer) (buffer-local-value 'default-directory buffer))
           (buffer-list))))

(defun gemini-companion-saved--unrestored-p ()
  "Return non-nil if something is not restored yet."
  (or gemini-companion-saved--unread
      (cl-find nil gemini-companion-saved--entries
               :key #'gemini-companion-saved--entry-record)))

(defun gemini-companion-saved--waiting ()
  "Return the entries of roots in use that are not restored yet."
  (seq-filter (lambda (entry)
                (and (null (gemini-companion-saved--entry-record entry))
                     (member (gemini-companion-saved--entry-root entry)
                             gemini-companion-saved--used)))
              gemini-companion-saved--entries))

(defun gemini-companion-saved--restore-later ()
  "Restore the entries of roots in use when Emacs is idle."
  (unless gemini-companion-saved--idle-timer
    (setq gemini-companion-saved--idle-timer
          (run-with-idle-timer 0.1 'repeat #'gemini-companion-saved--restore-some))))

(defun gemini-companion-saved--restore-some ()
  "Restore entries until the user types, or a slice is over; then go on later."
  (let ((since (float-time))
        (waiting (gemini-companion-saved--waiting)))
    (while (and waiting (not (input-pending-p))
                (< (- (float-time) since) gemini-companion-saved--slice))
      (gemini-companion-saved--restore (pop waiting)))
    (cond ((null waiting)
           (when gemini-companion-saved--idle-timer
             (cancel-timer gemini-companion-saved--idle-timer))
           (setq gemini-companion-saved--idle-timer nil))
          ;; A timer that repeats runs once each time Emacs is idle.
          ((current-idle-time)
           (run-with-idle-timer (time-add (current-idle-time) 0.01) nil
                                #'gemini-companion-saved--restore-some)))))

(defun gemini-companion-saved--restore (entry)
  "Restore ENTRY; if that is impossible, drop it, and report the reason."
  (let ((key (gemini-companion-saved--entry-key entry)))
    (condition-case err
        (let ((value (gemini-companion-saved--decode
                      (gemini-companion-saved--entry-data entry))))
          (cond ((symbolp key)
                 (unless (gemini-companion-part-load key)
                   (error "The files of %s are not installed" key))
                 (gemini-companion-part-restore key value)
                 (setf (gemini-companion-saved--entry-record entry) t
                       (gemini-companion-saved--entry-state entry)
                       (gemini-companion-saved--entry-data entry)))
                ((gemini-companion-saved--hidden-p key)
                 (gemini-companion-saved--drop entry)
                 (gemini-companion-saved--soon))
                (t
                 ;; The replay reports what became of the edits.
                 (setf (gemini-companion-saved--entry-record entry) t)
                 (let ((record (gemini-companion-garbage-later
                                 (gemini-companion-saved--replay key value))))
                   (setf (gemini-companion-saved--entry-record entry) record
                         (gemini-companion-saved--entry-state entry)
                         (gemini-companion-saved--state record))))))
      (error
       (gemini-companion-saved--drop entry)
       (gemini-companion-saved--soon)
       (message "Saved changes of %s do not fit, and are dropped: %s"
                (if (symbolp key) key (abbreviate-file-name key))
                (error-message-string err))))))

(defun gemini-companion-saved--restore-file (name)
  "Restore what is saved of the file NAME, a true name, now."
  (when (gemini-companion-saved--unrestored-p)
    (gemini-companion-saved--use name)
    (when-let* ((entry (gemini-companion-saved--of-key name))
                ((null (gemini-companion-saved--entry-record entry))))
      (gemini-companion-saved--restore entry))))

(defun gemini-companion-saved--visited ()
  "Restore what is saved of the file that the current buffer visits."
  (gemini-companion-log-guarded "Restoring saved changes"
    (when (and buffer-file-name (not (file-remote-p buffer-file-name)))
      (gemini-companion-saved--restore-file
       (gemini-companion-text-true-name buffer-file-name)))))

(defun gemini-companion-saved--follow (edit _event)
  "Restore what is saved of the file of EDIT, before something is recorded."
  (gemini-companion-saved--restore-file (gemini-companion-edit-true-name edit)))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'saved)))
  "Save what changes, and restore what is used."
  '((gemini-companion-changes-functions gemini-companion-saved--record-changed)
    (gemini-companion-comment-functions gemini-companion-saved--soon)
    (gemini-companion-turn-addition-hook gemini-companion-saved--soon)
    (gemini-companion-privacy-refresh-hook gemini-companion-saved--check-rules)
    (gemini-companion-session-changed-functions gemini-companion-saved--use-sessions)
    (gemini-companion-edit-file-functions gemini-companion-saved--follow -90)
    (find-file-hook gemini-companion-saved--visited -90)))

(cl-defmethod gemini-companion-part-start ((_part (eql 'saved)))
  "Find what the last Emacs has saved."
  (unless (or gemini-companion-saved--unread gemini-companion-saved--entries)
    (gemini-companion-saved--find-files))
  (when gemini-companion-saved--unread
    (gemini-companion-saved--use-buffers)
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (gemini-companion-saved--visited)))))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'saved)))
  "Save everything."
  (gemini-companion-log-guarded "Saving changes"
    (gemini-companion-saved--save-now))
  (dolist (timer (list gemini-companion-saved--timer gemini-companion-saved--idle-timer))
    (when timer
      (cancel-timer timer)))
  (cancel-function-timers #'gemini-companion-saved--restore-some)
  (dolist (root (seq-uniq (mapcar #'gemini-companion-saved--entry-root
                                  gemini-companion-saved--entries)))
    (gemini-companion-saved--unlock root))
  (setq gemini-companion-saved--entries nil
        gemini-companion-saved--unread nil
        gemini-companion-saved--used nil
        gemini-companion-saved--changed nil
        gemini-companion-saved--of-others nil
        gemini-companion-saved--due nil
        gemini-companion-saved--work nil
        gemini-companion-saved--all-files nil
        gemini-companion-saved--turns nil
        gemini-companion-saved--timer nil
        gemini-companion-saved--idle-timer nil))

(defun gemini-companion-saved--unlock (root)
  "Unlock the file of ROOT."
  (let ((file (gemini-companion-saved--file root)))
    (when (eq t (file-locked-p file))
      (unlock-file file))))

;;;; Commands

(defun gemini-companion-forget ()
  "Delete what is saved of this project for the next Emacs.
These are the changes left, unsent comments, and what is to be reported as
undone.  In this Emacs they stay; what changes then is saved again."
  (interactive)
  (unless (or gemini-companion-saved--entries gemini-companion-saved--unread)
    (gemini-companion-saved--find-files))
  (let* ((directory (file-name-as-directory
                     (gemini-companion-text-true-name default-directory)))
         (roots (seq-filter
                 (lambda (root)
                   (gemini-companion-text-in-directory-p
                    directory (file-name-as-directory root)))
                 (gemini-companion-saved--roots))))
    (unless roots
      (user-error "Nothing is saved of this project"))
    (dolist (root roots)
      (setf (alist-get root gemini-companion-saved--unread nil 'remove #'equal) nil)
      (gemini-companion-saved--set-changed root))
    (dolist (entry gemini-companion-saved--entries)
      (when (member (gemini-companion-saved--entry-root entry) roots)
        (if (gemini-companion-saved--entry-record entry)
            (setf (gemini-companion-saved--entry-data entry) nil)
          (gemini-companion-saved--drop entry))))
    (gemini-companion-saved--save-now)
    (message "Deleted what was saved of %s"
             (mapconcat #'abbreviate-file-name roots ", "))))

(provide 'gemini-companion-saved)
;;; gemini-companion-saved.el ends here
