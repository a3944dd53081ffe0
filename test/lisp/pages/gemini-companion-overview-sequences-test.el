;;; gemini-companion-overview-sequences-test.el --- Random sequences over several files  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Two CLIs write several files, and the user types, saves, uses git and decides by keys
;; in the overview, in the walk and in the buffers of the files, all by chance.  The
;; judge knows only lines and bytes.  Each line has a first word that no other line
;; has: b and a number for one of before, c for one of a CLI, and u for one of others.
;;
;; Lines of the user in the place of lines of a CLI go with these, and are in the kill
;; ring.  What undoing all leaves is not known of each line and byte:
;;
;; - lines of a file that a CLI has removed by a command, which it does not report
;; - lines that were kept, in an edit that was then undone as a whole
;; - others' lines, and kept ones, that a CLI had removed, once git has brought back
;;   all lines beside, or the line as it was before it was formatted
;; - all lines of a file, where the user resolved a conflict with what a CLI has written
;;   and that left no line of what it has written
;; - a line that a CLI had removed, which the user has put back in such a conflict, and
;;   which was formatted at the save
;;
;; Each sequence has a seed: GC_SEED, or nothing, and a number from 1 to GC_SEQUENCES.

;;; Code:

(require 'gemini-companion-overview-test-helper)
(require 'smerge-mode)

(cl-defstruct (gemini-companion-sequences-world (:copier nil))
  "What is known of all files.
NUMBER is that of the last line, SESSIONS are the CLIs, FILES are
`gemini-companion-sequences-file's, REMOVED are the words of the lines that a
CLI has removed at any time, also with \" ;\" if that was behind, and LOG is
what was done, the last one first."
  (number 0) sessions files removed log)

(cl-defstruct (gemini-companion-sequences-file (:copier nil))
  "What is known of the file NAME.
FIRST are its bytes before all, or nil if it was new.  LEFT are the words of the
lines that it has once all is undone; of those in EITHER, that is not known.
PURE is non-nil if only CLIs have written it, and nothing was kept."
  name first left either (pure t))

(defun gemini-companion-sequences--words (text)
  "Return the first words of the lines of TEXT, or of bytes."
  (mapcar (lambda (line) (car (split-string line " ")))
          (split-string (string-remove-prefix "\357\273\277" text) "[\r\n]+" t)))

;;;; What there is

(defun gemini-companion-sequences--bytes (name)
  "Return the bytes of the file NAME, or nil if there is none."
  (and (file-exists-p name) (gemini-companion-text-bytes name)))

(defun gemini-companion-sequences--text (name)
  "Return the text of NAME as the user sees it, or nil if there is no file."
  (if-let* ((buffer (find-buffer-visiting name)))
      (gemini-companion-text-of-buffer buffer)
    (gemini-companion-sequences--bytes name)))

(defun gemini-companion-sequences--texts (world)
  "Return the bytes and texts of all files of WORLD, and which are unsaved."
  (mapcar (lambda (file)
            (let* ((name (gemini-companion-sequences-file-name file))
                   (buffer (find-buffer-visiting name)))
              (list name (gemini-companion-sequences--bytes name)
                    (and buffer (buffer-modified-p buffer)
                         (gemini-companion-text-of-buffer buffer)))))
          (gemini-companion-sequences-world-files world)))

(defun gemini-companion-sequences--states ()
  "Return what is left and kept of each file, and what became of each edit.
The value is a list of both."
  (run-hook-with-args 'gemini-companion-watch-turned-functions nil)
  (list (mapcar (lambda (record)
                  (gemini-companion-changes-update record)
                  (list (gemini-companion-changes-path record)
                        (mapcar (lambda (change)
                                  (list (gemini-companion-hunk-new change)
                                        (gemini-companion-hunk-new-end change)
                                        (gemini-companion-hunk-lines change)
                                        (length (gemini-companion-record-change-edits
                                                 change))))
                                (gemini-companion-changes-file-known record))
                        (seq-count
                         (lambda (change)
                           (eq 'kept (gemini-companion-record-decided-state change)))
                         (gemini-companion-changes-kept-and-undone record))))
                (gemini-companion-changes-files 'all))
        (mapcar (lambda (edit)
                  (list (gemini-companion-edit-name edit 'plain)
                        (gemini-companion-changes-status edit)))
                (gemini-companion-edits))))

(defun gemini-companion-sequences--should-be (texts states world)
  "Assert that the files of WORLD have TEXTS, and what became of edits is STATES."
  (cl-mapc (lambda (text now) (should (equal text now)))
           texts (gemini-companion-sequences--texts world))
  (pcase-let ((`(,records ,edits) states)
              (`(,records-now ,edits-now) (gemini-companion-sequences--states)))
    (should (equal (mapcar #'car records) (mapcar #'car records-now)))
    (cl-mapc (lambda (record now) (should (equal record now))) records records-now)
    (should (equal edits edits-now))))

(defun gemini-companion-sequences--numbers ()
  "Assert that the numbers of the rows of files are that in the mode line."
  (let ((rows (gemini-companion-overview-rows default-directory)))
    (should (= (or (gemini-companion-test-left) 0)
               (apply #'+ (mapcar #'gemini-companion-overview-row-count-left rows))))
    (gemini-companion-sequences--refresh)
    (let ((lines (gemini-companion-overview-test-rows)))
      (ert-info ((string-join lines "\n"))
        (should (= (or (gemini-companion-test-left) 0)
                   (cl-loop for line in lines
                            when (string-match
                                  (concat "\\`[▾▸] \\(?:Gemini CLI\\|Qwen Code\\).*?"
                                          "\\([0-9]+\\)\\(?: of [0-9]+\\)? left")
                                  line)
                            sum (string-to-number (match-string 1 line)))))))))

(defun gemini-companion-sequences--refresh ()
  "Draw the overview again."
  (with-current-buffer "*gemini*"
    (gemini-companion-page-refresh)))

(defun gemini-companion-sequences--left (world)
  "Return the words of LEFT and EITHER of each file of WORLD, to be restored."
  (mapcar (lambda (file)
            (list file
                  (gemini-companion-sequences-file-left file)
                  (gemini-companion-sequences-file-either file)
                  (gemini-companion-sequences-file-pure file)))
          (gemini-companion-sequences-world-files world)))

(defun gemini-companion-sequences--restore (left)
  "Set LEFT, which `gemini-companion-sequences--left' has returned."
  (pcase-dolist (`(,file ,left ,either ,pure) left)
    (setf (gemini-companion-sequences-file-left file) left
          (gemini-companion-sequences-file-either file) either
          (gemini-companion-sequences-file-pure file) pure)))

;;;; CLIs

(defun gemini-companion-sequences--new (world whose)
  "Return a new line of WHOSE, a letter, in WORLD, without its end."
  (format "%s%d é" whose (cl-incf (gemini-companion-sequences-world-number world))))

(defun gemini-companion-sequences--new-file (world)
  "Return the bytes that a CLI writes to a new file in WORLD."
  (encode-coding-string
   (mapconcat (lambda (_)
                (concat (gemini-companion-sequences--new world "c") "\n"))
              (number-sequence 1 (1+ (random 4))) "")
   'utf-8-unix))

(defun gemini-companion-sequences--written (world bytes keep)
  "Return BYTES as a CLI of WORLD may have written them.
It removes only lines whose word is in KEEP, or any if that is t."
  (let* ((mark (string-prefix-p "\357\273\277" bytes))
         (end (if (string-search "\r\n" bytes) "\r\n" "\n"))
         (open (not (string-suffix-p "\n" bytes)))
         (lines (split-string (string-remove-prefix "\357\273\277" bytes)
                              "\n" t)))
    (setq lines (mapcar (lambda (line)
                          (concat (string-remove-suffix "\r" line)
                                  (if (string-suffix-p "\r" line) "\r\n" "\n")))
                        lines))
    (when (and lines open)
      (setcar (last lines)
              (concat (string-remove-suffix "\n" (car (last lines))) end)))
    (dotimes (_ (1+ (random 3)))
      (let* ((i (random (1+ (length lines))))
             (may-remove
              (seq-take-while
               (lambda (line)
                 (or (eq keep t)
                     (member (car (gemini-companion-sequences--words line)) keep)))
               (nthcdr i lines)))
             (count (min (random 3) (length may-remove))))
        (dolist (line (seq-take (nthcdr i lines) count))
          (let ((word (car (gemini-companion-sequences--words line))))
            (push word (gemini-companion-sequences-world-removed world))
            (when (string-match-p " ;[\r\n]*\\'" line)
              (push (concat word " ;")
                    (gemini-companion-sequences-world-removed world)))))
        (setq lines (append (seq-take lines i)
                            ;; What only removes lines of a CLI is nothing to undo.
                            (unless (and (= 0 (random 4))
                                         (not (seq-some
                                               (apply-partially #'string-prefix-p "c")
                                               (seq-take (nthcdr i lines) count))))
                              (list (encode-coding-string
                                     (concat (gemini-companion-sequences--new world "c")
                                             end)
                                     'utf-8-unix)))
                            (nthcdr (+ i count) lines)))))
    (let ((made (apply #'concat (mapcar (lambda (line)
                                          (if (string-suffix-p "\n" line)
                                              line
                                            (concat line end)))
                                        lines))))
      (when open
        (setq made (string-remove-suffix "\r" (string-remove-suffix "\n" made))))
      (concat (and mark "\357\273\277") made))))

(defun gemini-companion-sequences--cli-writes (name session bytes how)
  "Let the CLI of SESSION write BYTES to the file NAME, and tell Emacs.
NAME may be that of a symbolic link.  For HOW, see
`gemini-companion-sequences--how'."
  (let* ((path (expand-file-name name))
         (before (gemini-companion-sequences--bytes name))
         (decode (lambda (bytes)
                   (and bytes (decode-coding-string bytes 'utf-8-unix))))
         (after (funcall decode bytes)))
    (if (eq how 'proposal)
        (progn
          (setq gemini-companion-test-send
                (lambda (_) (gemini-companion-test-write path bytes)))
          (gemini-companion-test-writes
           name (gemini-companion-text-normalized after) session))
      (gemini-companion-test-write path bytes)
      ;; Auto Revert may be first; it does not revert a buffer whose file is missing.
      (when (and before (= 0 (random 2)))
        (gemini-companion-revert-now path))
      (let ((plain (if (eq how 'plain) #'gemini-companion-text-normalized #'identity)))
        (gemini-companion-reported-write
         session path (and before (funcall plain (funcall decode before)))
         (funcall plain after)))
      (gemini-companion-revert-now path))))

(defun gemini-companion-sequences--how ()
  "Return by chance how Emacs knows of a write by a CLI.
It is by a `proposal', or a report, `plain' with plain line ends, or `own'."
  (seq-random-elt '(proposal plain own)))

(defun gemini-companion-sequences--merge (file)
  "Merge unsaved text of FILE with what was written; resolve conflicts.
The user prefers what was unsaved."
  (when-let* ((name (gemini-companion-sequences-file-name file))
              (buffer (find-buffer-visiting name))
              ((buffer-modified-p buffer)))
    (with-current-buffer buffer
      (unless (verify-visited-file-modtime)
        (gemini-companion-merge)
        (when (bound-and-true-p smerge-mode)
          (goto-char (point-min))
          (while (re-search-forward smerge-begin-re nil t)
            (goto-char (match-beginning 0))
            (smerge-match-conflict)
            (smerge-keep-upper))
          (let ((written (gemini-companion-sequences--words
                          (gemini-companion-sequences--bytes name)))
                (now (gemini-companion-sequences--words
                      (gemini-companion-text-of-buffer))))
            (unless (seq-intersection written now)
              (cl-callf append (gemini-companion-sequences-file-either file)
                written (gemini-companion-sequences-file-left file)))
            (when (memq #'gemini-companion-sequences--format before-save-hook)
              (cl-callf append (gemini-companion-sequences-file-either file)
                (seq-difference now written))))
          (gemini-companion-changes-update-buffer))))))

(defun gemini-companion-sequences--write (world session)
  "Let the CLI of SESSION write a file of WORLD, or make one."
  (let* ((files (gemini-companion-sequences-world-files world))
         (file (and (not (= 0 (random 10))) (seq-random-elt files)))
         (name (and file (gemini-companion-sequences-file-name file)))
         (bytes (and file (gemini-companion-sequences--bytes name)))
         (how (gemini-companion-sequences--how)))
    (cond
     ((null bytes)
      (unless file
        (setq name (format "new%d" (length files))
              file (make-gemini-companion-sequences-file :name name))
        (setf (gemini-companion-sequences-world-files world)
              (append files (list file))))
      (gemini-companion-sequences--cli-writes
       name session (gemini-companion-sequences--new-file world) how))
     (t
      (gemini-companion-sequences--cli-writes
       (if (and (equal name "a") (= 0 (random 2))) "link" name) session
       (gemini-companion-sequences--written
        world bytes
        (if-let* ((buffer (find-buffer-visiting name))
                  ((buffer-modified-p buffer)))
            (gemini-companion-sequences--words
             (gemini-companion-sequences--text name))
          t))
       how)
      (gemini-companion-sequences--merge file)))
    (list name (gemini-companion-session-id session) how bytes
          (gemini-companion-sequences--bytes name))))

(defun gemini-companion-sequences--remove (world)
  "Let a CLI of WORLD remove a file by a command, and write it again."
  (let* ((file (seq-random-elt (gemini-companion-sequences-world-files world)))
         (name (gemini-companion-sequences-file-name file))
         (buffer (find-buffer-visiting name))
         (words (gemini-companion-sequences--words
                 (or (gemini-companion-sequences--text name) "")))
         (session (seq-random-elt (gemini-companion-sequences-world-sessions world))))
    (when (and (file-exists-p name)
               (not (and buffer (buffer-modified-p buffer))))
      (gemini-companion-sequences--prompt world session)
      (cl-callf append (gemini-companion-sequences-world-removed world) words)
      ;; Without a snapshot, Emacs knows nothing of that.
      (cl-callf append (gemini-companion-sequences-file-either file)
        words (gemini-companion-sequences-file-left file))
      (setf (gemini-companion-sequences-file-left file) nil)
      ;; It keeps the line ends of the new file.
      (setf (gemini-companion-sequences-file-pure file) nil)
      (delete-file name)
      ;; With a buffer, the edit could not be undone.
      (when buffer
        (kill-buffer buffer))
      (gemini-companion-sequences--cli-writes
       name session
       (gemini-companion-sequences--new-file world)
       (gemini-companion-sequences--how)))
    name))

(defun gemini-companion-sequences--prompt (world session)
  "Begin a turn of SESSION in WORLD, and return its prompt."
  (let ((prompt (format "Turn %d" (cl-incf (gemini-companion-sequences-world-number
                                            world)))))
    (gemini-companion-state-report session 'prompt prompt)
    prompt))

(defun gemini-companion-sequences--turn (world)
  "Let a CLI of WORLD have a turn, and maybe undo all of it, and take that back."
  (let* ((session (seq-random-elt (gemini-companion-sequences-world-sessions world)))
         (before (gemini-companion-sequences--texts world))
         (prompt (gemini-companion-sequences--prompt world session))
         (done nil))
    (dotimes (_ (1+ (random 3)))
      (push (gemini-companion-sequences--write world session) done)
      ;; Another CLI writes meanwhile.
      (when (= 0 (random 6))
        (push (gemini-companion-sequences--interrupt world session) done)
        (setq before nil)))
    (unless (= 0 (random 4))
      (gemini-companion-state-report session 'end nil))
    (push (list 'turn (gemini-companion-session-id session) (reverse done))
          (gemini-companion-sequences-world-log world))
    (when (and before (= 0 (random 2))
               (not (seq-some (lambda (text) (nth 2 text)) before)))
      (gemini-companion-sequences--undo-turn world prompt before))))

(defun gemini-companion-sequences--interrupt (world session)
  "Let the other CLI than that of SESSION write a file of WORLD in a turn."
  (let ((other (car (remq session (gemini-companion-sequences-world-sessions world)))))
    (gemini-companion-sequences--prompt world other)
    (prog1 (gemini-companion-sequences--write world other)
      (when (= 0 (random 2))
        (gemini-companion-state-report other 'end nil)))))

(defun gemini-companion-sequences--undo-turn (world prompt before)
  "Undo the turn with PROMPT, before which the texts of WORLD were BEFORE.
Nothing else has happened since.  Take that back, or not."
  (let ((after (gemini-companion-sequences--texts world))
        (states (gemini-companion-sequences--states)))
    (gemini-companion-sequences--refresh)
    (when (ignore-errors
            (gemini-companion-overview-test-go-to (concat prompt "\\_>.* left"))
            t)
      (push (list "u" prompt (gemini-companion-sequences--keys "u"))
            (gemini-companion-sequences-world-log world))
      (pcase-dolist (`(,name ,bytes ,_) (gemini-companion-sequences--texts world))
        (ert-info ((format "Turn undone in %s" name))
          (let ((was (nth 1 (assoc name before))))
            ;; A new file of which nothing is left is deleted, also if it was empty.
            (unless (and (equal was "") (null bytes))
              (should (equal was bytes))))))
      (unless (= 0 (random 3))
        (push (list "C-/" (gemini-companion-sequences--keys "C-/"))
              (gemini-companion-sequences-world-log world))
        (gemini-companion-sequences--should-be after states world)))))

;;;; The user

(defun gemini-companion-sequences--format ()
  "Format some lines of the current buffer, as a hook of a save does.
The first words of lines stay."
  (gemini-companion-test-format 5 " ;"))

(defun gemini-companion-sequences--visit (name)
  "Visit the file NAME, and return its buffer."
  (let ((new (null (find-buffer-visiting name))))
    (find-file name)
    (when new
      (buffer-enable-undo)
      (when (= 0 (random 2))
        (add-hook 'before-save-hook #'gemini-companion-sequences--format nil t)))
    (current-buffer)))

(defun gemini-companion-sequences--type (world)
  "Insert, change or delete a line of a file of WORLD, as the user."
  (let* ((file (seq-random-elt (gemini-companion-sequences-world-files world)))
         (name (gemini-companion-sequences-file-name file)))
    (when (file-exists-p name)
      (with-current-buffer (gemini-companion-sequences--visit name)
        (gemini-companion-sequences--merge file)
        (save-restriction
          (widen)
          (goto-char (point-min))
          (forward-line (random (1+ (count-lines (point-min) (point-max)))))
          (unless (bolp)
            (beginning-of-line))
          (let ((word (car (gemini-companion-sequences--words
                            (buffer-substring-no-properties
                             (point) (line-end-position))))))
            (when (and word (= 0 (random 2))
                       (< (line-end-position) (point-max))
                       ;; Without a line in common, the file is another one.
                       (< 1 (count-lines (point-min) (point-max)))
                       ;; No text tells its deletion from the CLI's.
                       (not (member word (gemini-companion-sequences-world-removed
                                          world))))
              (cl-callf2 delete word (gemini-companion-sequences-file-left file))
              (delete-region (point) (line-beginning-position 2)))
            (unless (= 0 (random 3))
              (let ((new (gemini-companion-sequences--new world "u")))
                (push (car (gemini-companion-sequences--words new))
                      (gemini-companion-sequences-file-left file))
                (insert new "\n")))))
        (setf (gemini-companion-sequences-file-pure file) nil)))
    name))

(defun gemini-companion-sequences--save (world)
  "Save a file of WORLD, and kill its buffer by chance."
  (let* ((file (seq-random-elt (gemini-companion-sequences-world-files world)))
         (name (gemini-companion-sequences-file-name file)))
    (when-let* ((buffer (find-buffer-visiting name))
                ((file-exists-p name)))
      (with-current-buffer buffer
        (gemini-companion-sequences--merge file)
        (when (buffer-modified-p)
          (setf (gemini-companion-sequences-file-pure file) nil)
          (save-buffer))
        (when (= 0 (random 2))
          (kill-buffer))))
    name))

(defun gemini-companion-sequences--rename (world)
  "Rename a file of WORLD in Emacs.  No change is lost by that."
  (let* ((file (seq-random-elt (gemini-companion-sequences-world-files world)))
         (name (gemini-companion-sequences-file-name file))
         (new (concat "r" name)))
    (when (and (file-exists-p name) (not (equal name "a"))
               (length< name 6))
      (with-current-buffer (gemini-companion-sequences--visit name)
        (gemini-companion-sequences--merge file)
        (gemini-companion-changes-update-buffer)
        (let ((left (gemini-companion-test-left)))
          (rename-file name new)
          (let ((modified (buffer-modified-p)))
            (set-visited-file-name (expand-file-name new) t t)
            (set-buffer-modified-p modified))
          (should (equal left (gemini-companion-test-left)))))
      (setf (gemini-companion-sequences-file-name file) new))
    (list name new)))

;;;; Others

(defun gemini-companion-sequences--git (&rest arguments)
  "Call git with ARGUMENTS, which must not fail."
  (with-temp-buffer
    (unless (eql 0 (apply #'call-process "git" nil t nil
                          "-c" "user.name=x" "-c" "user.email=x@y"
                          "-c" "core.autocrlf=false" arguments))
      (error "%S: %s" arguments (buffer-string)))))

(defun gemini-companion-sequences--others-wrote (world)
  "Let Emacs notice what other programs have written to the files of WORLD."
  (run-hook-with-args 'gemini-companion-watch-turned-functions nil)
  ;; What no CLI has written is reverted by Auto Revert.
  (dolist (file (gemini-companion-sequences-world-files world))
    (gemini-companion-revert-now
     (expand-file-name (gemini-companion-sequences-file-name file)))))

(defun gemini-companion-sequences--checkout (world)
  "Check a file of WORLD out from git, if it is saved."
  (let* ((file (seq-random-elt (gemini-companion-sequences-world-files world)))
         (name (gemini-companion-sequences-file-name file))
         (buffer (find-buffer-visiting name)))
    (when (and (gemini-companion-sequences-file-first file)
               (member name '("a" "b" "c" "d"))
               (file-exists-p name)
               (not (and buffer (buffer-modified-p buffer))))
      (gemini-companion-sequences--git "checkout" "-q" "--" name)
      (gemini-companion-sequences--others-wrote world)
      ;; A CLI's hunk in which other lines are missing, too, can bring them back.
      (cl-callf append (gemini-companion-sequences-file-either file)
        (seq-intersection (gemini-companion-sequences-world-removed world)
                          (seq-difference
                           (gemini-companion-sequences-file-left file)
                           (gemini-companion-sequences--words
                            (gemini-companion-sequences-file-first file))))
        ;; So can it bring back a line as it was formatted, beside that line.
        (mapcar (apply-partially #'string-remove-suffix " ;")
                (seq-filter (apply-partially #'string-suffix-p " ;")
                            (gemini-companion-sequences-world-removed world))))
      (setf (gemini-companion-sequences-file-left file)
            (gemini-companion-sequences--words
             (gemini-companion-sequences-file-first file)))
      name)))

(defun gemini-companion-sequences--stash (world)
  "Stash all files of WORLD and bring them back, if all are saved.
Then all is as before."
  (let ((texts (gemini-companion-sequences--texts world)))
    (unless (seq-some (lambda (text) (nth 2 text)) texts)
      (let ((states (gemini-companion-sequences--states)))
        (gemini-companion-sequences--git "stash" "-q")
        (gemini-companion-sequences--others-wrote world)
        ;; There may have been nothing to stash.
        (ignore-errors
          (gemini-companion-sequences--git "stash" "pop" "-q"))
        (gemini-companion-sequences--others-wrote world)
        (gemini-companion-sequences--should-be texts states world)))))

(defun gemini-companion-sequences--pull (world)
  "Let another program write a line in a file of WORLD, if it is saved."
  (let* ((file (seq-random-elt (gemini-companion-sequences-world-files world)))
         (name (gemini-companion-sequences-file-name file))
         (bytes (gemini-companion-sequences--bytes name))
         (buffer (find-buffer-visiting name)))
    (when (and bytes (not (and buffer (buffer-modified-p buffer))))
      (let* ((new (concat (car (split-string (gemini-companion-sequences--new world "u")))
                          (if (string-search "\r\n" bytes) "\r\n" "\n")))
             (starts (cons 0 (cl-loop for i from 0 below (1- (length bytes))
                                      when (eq ?\n (aref bytes i)) collect (1+ i))))
             (start (seq-random-elt
                     (or (cdr starts)
                         (list (if (string-prefix-p "\357\273\277" bytes) 3 0))))))
        (push (car (gemini-companion-sequences--words new))
              (gemini-companion-sequences-file-left file))
        (setf (gemini-companion-sequences-file-pure file) nil)
        (gemini-companion-test-write
         name (concat (substring bytes 0 start) new (substring bytes start)))
        (gemini-companion-sequences--others-wrote world)))
    name))

;;;; Decisions

(defun gemini-companion-sequences--kept (world groups)
  "Note that the changes of GROUPS, (RECORD . CHANGES), are kept in WORLD."
  (pcase-dolist (`(,record . ,changes) groups)
    (let* ((name (file-name-nondirectory (gemini-companion-changes-file-name record)))
           (file (cl-find name (gemini-companion-sequences-world-files world)
                          :key #'gemini-companion-sequences-file-name :test #'equal))
           (now (gemini-companion-lines-split (gemini-companion-changes-text record)))
           (words (lambda (lines)
                    (gemini-companion-sequences--words
                     (encode-coding-string (mapconcat #'identity lines "\n")
                                           'utf-8-unix))))
           (with (funcall words now))
           (without (funcall words (gemini-companion-lines-without
                                    changes now))))
      (setf (gemini-companion-sequences-file-left file)
            (seq-union (seq-difference (gemini-companion-sequences-file-left file)
                                       (seq-difference without with))
                       (seq-difference with without))
            (gemini-companion-sequences-file-pure file) nil))))

(defun gemini-companion-sequences--forget-kept (world)
  "Note that what was kept in WORLD may be undone, as whole edits were."
  (dolist (file (gemini-companion-sequences-world-files world))
    (cl-callf append (gemini-companion-sequences-file-either file)
      (gemini-companion-sequences-world-removed world)
      (seq-filter (apply-partially #'string-prefix-p "c")
                  (gemini-companion-sequences-file-left file)))))

(defun gemini-companion-sequences--go ()
  "Go to a row or change of the overview by chance, and return its line."
  (gemini-companion-sequences--refresh)
  (with-current-buffer "*gemini*"
    (let ((places nil))
      (goto-char (point-min))
      (while (not (eobp))
        (when (and (not (invisible-p (point)))
                   (or (gemini-companion-overview-page-change-id)
                       (and (gemini-companion-overview-page-on-heading-p)
                            (memq (gemini-companion-overview-page-kind)
                                  '(cli turn reviewed file)))))
          (push (point) places))
        (forward-line))
      (when places
        (goto-char (seq-random-elt places))
        (set-window-point (get-buffer-window "*gemini*") (point))
        (gemini-companion-overview-test-line)))))

(defun gemini-companion-sequences--keys (keys &optional answer)
  "Type KEYS in the overview, and return the message, or a user error as a text.
Questions are answered by ANSWER, by default yes."
  (pop-to-buffer-same-window "*gemini*")
  (condition-case problem
      (gemini-companion-overview-test-keys keys (or answer 'yes))
    (user-error (concat "Error: " (error-message-string problem)))))

(defun gemini-companion-sequences--decide (world)
  "Keep or undo something of WORLD in the overview, and take it back by chance."
  (when-let* ((line (gemini-companion-sequences--go))
              (texts (gemini-companion-sequences--texts world))
              (states (gemini-companion-sequences--states)))
    (let* ((keys (seq-random-elt '("u" "u" "u" "U" "C-u u" "C-u U" "k" "K" "C-u K")))
           (left (gemini-companion-sequences--left world))
           (row (with-current-buffer "*gemini*"
                  (gemini-companion-overview-page-row)))
           ;; Its line about a missing last newline does not begin with k.
           (change (with-current-buffer "*gemini*"
                     (gemini-companion-overview-page-change)))
           (on-kept (and (gemini-companion-record-decided-p change)
                         (eq 'kept (gemini-companion-record-decided-state change))))
           (keeps (string-search "k" (downcase keys)))
           (kept (and keeps (gemini-companion-sequences--at-point row keys)))
           (done (progn (when keeps (gemini-companion-sequences--kept world kept))
                        (gemini-companion-sequences--keys keys))))
      (push (list keys line done) (gemini-companion-sequences-world-log world))
      (cond
       ((and done (string-match-p "\\`\\(Error\\|Nothing\\|Not \\)" done))
        (gemini-companion-sequences--restore left)
        (gemini-companion-sequences--should-be texts states world))
       (t
        (when (or (equal keys "C-u u")
                  on-kept
                  (string-search "no longer kept" (or done "")))
          (gemini-companion-sequences--forget-kept world))
        (when keeps
          (should (equal texts (gemini-companion-sequences--texts world))))
        (gemini-companion-sequences--numbers)
        (let ((after (gemini-companion-sequences--texts world))
              (after-states (gemini-companion-sequences--states))
              (kept-left (gemini-companion-sequences--left world)))
          (when (= 0 (random 2))
            (push (list "C-/" (gemini-companion-sequences--keys "C-/"))
                  (gemini-companion-sequences-world-log world))
            (gemini-companion-sequences--restore left)
            (gemini-companion-sequences--should-be texts states world)
            (gemini-companion-sequences--numbers)
            (when (= 0 (random 2))
              (push (list "C-M-_" (gemini-companion-sequences--redo))
                    (gemini-companion-sequences-world-log world))
              (gemini-companion-sequences--restore kept-left)
              (gemini-companion-sequences--should-be after after-states world)))))))))

(defun gemini-companion-sequences--walk (world)
  "Keep or undo a change of WORLD in a walk, and undo that in its buffer by chance."
  (let* ((files (gemini-companion-sequences-world-files world))
         (name (gemini-companion-sequences-file-name (seq-random-elt files))))
    (when (and (file-exists-p name) (gemini-companion-test-left))
      (gemini-companion-sequences--visit name)
      (goto-char (1+ (random (point-max))))
      (when (= 0 (random 2))
        (narrow-to-region (point) (point-max)))
      (unwind-protect
          (gemini-companion-test-answering #'always
            (ignore-error user-error
              (gemini-companion-test-walk 'gemini-companion-next-change)
              (gemini-companion-sequences--walk-here world)))
        ;; The next key ends the walk.
        (let ((this-command #'ignore))
          (run-hooks 'pre-command-hook))
        (mapc (lambda (buffer)
                (when (buffer-file-name buffer)
                  (with-current-buffer buffer (widen))))
              (buffer-list))))))

(defun gemini-companion-sequences--walk-here (world)
  "Keep or undo the change of WORLD to which the walk has gone."
  (let ((buffer (window-buffer))
        (texts (gemini-companion-sequences--texts world))
        (states (gemini-companion-sequences--states))
        (left (gemini-companion-sequences--left world))
        (keeps (= 0 (random 3))))
    (when keeps
      (with-current-buffer buffer
        (gemini-companion-sequences--kept
         world (list (list (gemini-companion-changes-here)
                           (gemini-companion-walk-change))))))
    (push (list 'walk (buffer-name buffer) keeps
                (gemini-companion-test-walk (if keeps "k" "u")))
          (gemini-companion-sequences-world-log world))
    (when keeps
      (should (equal texts (gemini-companion-sequences--texts world))))
    (when (and (buffer-live-p buffer) (= 0 (random 2)))
      (with-current-buffer buffer
        (let ((last-command 'ignore))
          (undo-boundary)
          (undo)
          (run-hooks 'post-command-hook)))
      (gemini-companion-sequences--restore left)
      (gemini-companion-sequences--should-be texts states world))))

(defun gemini-companion-sequences--redo ()
  "Redo the last decision that was taken back; return the message."
  (pop-to-buffer-same-window "*gemini*")
  (condition-case problem
      (gemini-companion-test-answering #'always
        (call-interactively (key-binding [remap undo-redo])))
    (user-error (concat "Error: " (error-message-string problem)))))

(defun gemini-companion-sequences--at-point (row keys)
  "Return the changes that KEYS, which keep, will keep at ROW."
  (with-current-buffer "*gemini*"
    (cond
     ((and (equal keys "k") (gemini-companion-overview-page-change-id))
      (when (eq 'left (car (gemini-companion-overview-page-change-id)))
        (list (list (gemini-companion-overview-row-record row)
                    (gemini-companion-overview-page-change)))))
     ((equal keys "k") (gemini-companion-overview-row-groups row))
     (t
      (when-let* ((above (if (equal keys "C-u K")
                             (or (gemini-companion-overview-page-ancestor row 'turn)
                                 (gemini-companion-overview-page-ancestor row 'cli))
                           (gemini-companion-overview-page-ancestor row 'file))))
        (gemini-companion-overview-row-groups above))))))

;;;; Sequences

(defun gemini-companion-sequences--first (world)
  "Return the bytes of a new file in WORLD.
Eight of ten are plain: without a mark, with LF, and a newline at the end."
  (let* ((lines (mapcar (lambda (_) (gemini-companion-sequences--new world "b"))
                        (number-sequence 1 (+ 8 (random 8)))))
         (text (concat (string-join lines "\n") "\n")))
    (pcase (random 25)
      (0 (encode-coding-string text 'utf-8-dos))
      (1 (encode-coding-string text 'utf-8-with-signature-unix))
      (2 (encode-coding-string text 'utf-8-with-signature-dos))
      (3 (encode-coding-string (substring text 0 -1) 'utf-8-unix))
      (4 (encode-coding-string (substring text 0 -1) 'utf-8-dos))
      (_ (encode-coding-string text 'utf-8-unix)))))

(defun gemini-companion-sequences--step (world)
  "Do something by chance in WORLD."
  (let ((step (seq-random-elt
               '(turn turn turn turn type type save decide decide decide walk walk
                      rename checkout stash pull remove))))
    (push step (gemini-companion-sequences-world-log world))
    (push (funcall (intern (format "gemini-companion-sequences--%s" step)) world)
          (gemini-companion-sequences-world-log world))
    (gemini-companion-sequences--numbers)
    ;; Names are relative, and the step may have killed the current buffer.
    (set-buffer "*gemini*")))

(defun gemini-companion-sequences--killed ()
  "Return the words of the lines of others that are in the kill ring."
  (seq-filter (apply-partially #'string-prefix-p "u")
              (seq-mapcat #'gemini-companion-sequences--words kill-ring)))

(defun gemini-companion-sequences--undo-all (world)
  "Undo all that is left in WORLD, and check each file."
  (dolist (file (gemini-companion-sequences-world-files world))
    (gemini-companion-sequences--merge file))
  ;; A new file with unsaved text is to be deleted by hand; so is one that a CLI has
  ;; removed and written again, if that was its first edit.
  (dolist (file (gemini-companion-sequences-world-files world))
    (when-let* (((or (null (gemini-companion-sequences-file-first file))
                     (gemini-companion-sequences-file-either file)))
                (buffer (find-buffer-visiting
                         (gemini-companion-sequences-file-name file))))
      (with-current-buffer buffer
        (when (buffer-modified-p)
          ;; A hook may format the text.
          (setf (gemini-companion-sequences-file-pure file) nil)
          (save-buffer)))))
  (let ((times 6))
    (while (and (gemini-companion-test-left) (< 0 (cl-decf times)))
      (dolist (cli '("Gemini" "Qwen"))
        (gemini-companion-sequences--refresh)
        (ignore-error error
          (gemini-companion-overview-test-go-to (concat "\\`[▾▸] " cli ".* left")))
        (let ((done (gemini-companion-sequences--keys "u")))
          (push (list 'undo-all cli done) (gemini-companion-sequences-world-log world))
          ;; Lines that were kept have characters that the file did not have.
          (when (and (= times 1) (string-search "undo these changes first" (or done "")))
            (throw 'conflict 'refused))))))
  (should-not (gemini-companion-test-left))
  (dolist (file (gemini-companion-sequences-world-files world))
    (let* ((name (gemini-companion-sequences-file-name file))
           (either (gemini-companion-sequences-file-either file))
           (text (gemini-companion-sequences--text name)))
      (push (list 'check name) (gemini-companion-sequences-world-log world))
      (ert-info ((format "%s" name))
        (let ((words (seq-difference (gemini-companion-sequences--words (or text ""))
                                     either))
              (left (seq-difference (gemini-companion-sequences-file-left file) either)))
          (should-not (seq-difference words left))
          (should (equal words (seq-uniq words)))
          (should-not (seq-difference (seq-difference left words)
                                      (gemini-companion-sequences--killed))))
        (when (gemini-companion-sequences-file-pure file)
          (when-let* ((buffer (find-buffer-visiting name)))
            (with-current-buffer buffer
              ;; The user saves what an undo has left unsaved, and adds nothing.
              (let ((before-save-hook nil)
                    (require-final-newline nil))
                (save-buffer))))
          (should (equal (or (gemini-companion-sequences-file-first file) "")
                         (or (gemini-companion-sequences--bytes name) ""))))))))

(defun gemini-companion-sequences--run (session)
  "Run a sequence with the CLI of SESSION and another one; return how it ended."
  (let* ((two (gemini-companion-test-session-like
               (gemini-companion-test-session "two" 2) :client "qwen"))
         (one (gemini-companion-test-session-like session :client "gemini"))
         (world (make-gemini-companion-sequences-world :sessions (list one two)))
         (require-final-newline (= 0 (random 2)))
         (mode-require-final-newline require-final-newline)
         (kill-ring-max 1000)
         (kill-ring nil)
         (ended nil))
    (gemini-companion-test-set-sessions (list one two))
    (dolist (name (seq-take '("a" "b" "c" "d") (+ 2 (random 3))))
      (let ((bytes (gemini-companion-sequences--first world)))
        (gemini-companion-test-write name bytes)
        (setf (gemini-companion-sequences-world-files world)
              (append (gemini-companion-sequences-world-files world)
                      (list (make-gemini-companion-sequences-file
                             :name name :first bytes
                             :left (gemini-companion-sequences--words bytes)))))))
    (make-symbolic-link "a" "link")
    (gemini-companion-sequences--git "init" "-q")
    (gemini-companion-sequences--git "add" ".")
    (gemini-companion-sequences--git "commit" "-q" "-m" "x")
    (gemini-companion-turn-page)
    (unwind-protect
        (setq ended
              (catch 'conflict
                (dotimes (_ 10)
                  (gemini-companion-sequences--step world))
                (gemini-companion-sequences--undo-all world)
                'right))
      (unless ended
        (princ (mapconcat (apply-partially #'format "  %S\n")
                          (reverse (gemini-companion-sequences-world-log world)) ""))))))

(ert-deftest gemini-companion-overview-sequences-are-right ()
  (skip-unless (executable-find "git"))
  (let ((ends nil))
    (dotimes (n (string-to-number (or (getenv "GC_SEQUENCES") "8")))
      (let ((seed (format "%s%d" (or (getenv "GC_SEED") "") (1+ n))))
        (ert-info ((format "Sequence %s" seed))
          (random seed)
          (gemini-companion-overview-test-with nil
            (push (gemini-companion-sequences--run session) ends)))))
    ;; The others had a conflict in a merge.
    (message "%d of %d sequences to the end"
             (seq-count (apply-partially #'eq 'right) ends) (length ends))))

(provide 'gemini-companion-overview-sequences-test)
;;; gemini-companion-overview-sequences-test.el ends here
