;;; gemini-companion-rename.el --- Renames by a language server, reviewed as one  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A model asks for the rename of a symbol.  The language server computes it, and Emacs
;; shows it as a permission, whose text is the patch of all files.  A yes is for all of
;; them: Emacs writes all files or none, and undoing the rename is one decision.
;;
;; Some language servers rename only some of the occurrences without reporting that,
;; accept a name that exists already, or drop unsaved lines.  So the request is
;; repeated until two answers are equal, each file is checked for changes other than
;; the name, and the other files with the old name are listed for the user and the
;; model.  A rename that is too large for a user to judge is refused before anything is
;; displayed.

;;; Code:

(require 'gemini-companion-client)
(require 'gemini-companion-coding)
(require 'gemini-companion-commands)
(require 'gemini-companion-context)
(require 'gemini-companion-edit)
(require 'gemini-companion-eglot)
(require 'gemini-companion-errors)
(require 'gemini-companion-label)
(require 'gemini-companion-lines)
(require 'gemini-companion-log)
(require 'gemini-companion-lookup)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-permission)
(require 'gemini-companion-request)
(require 'gemini-companion-reported)
(require 'gemini-companion-revert)
(require 'gemini-companion-roots)
(require 'gemini-companion-server)
(require 'gemini-companion-session)
(require 'gemini-companion-step)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'gemini-companion-undo)
(require 'gemini-companion-unified-draw)
(require 'gemini-companion-watch)
(require 'gemini-companion-words)
(require 'map)

;;;; Keys

(defvar gemini-companion-rename-mode-map
  ;; The map of permissions is no parent, since a rename is not asked in a terminal.
  (gemini-companion-commands-special-map 'rename)
  "Keys in the buffer of a rename.")

;;;; State

(defconst gemini-companion-rename-tool "rename_symbol"
  "The name of the tool of the model.")

(defvar gemini-companion-rename--pause 1
  "Seconds between two questions to a language server about one rename.")

(defvar gemini-companion-rename--patience 30
  "Seconds after which a server without two equal answers has none.")

(defconst gemini-companion-rename--most-files 100
  "Number of files that a rename may change.")

(defconst gemini-companion-rename--largest-file (* 1024 1024)
  "Size in bytes of the largest file that a rename may change.")

(defvar gemini-companion-rename-longest 100000
  "Maximum number of characters of the patch of a rename.")

(cl-defstruct (gemini-companion-rename
               (:noinline t)
               (:include gemini-companion-permission
                         (kind 'rename) (tool gemini-companion-rename-tool))
               (:constructor gemini-companion-rename--make)
               (:copier nil))
  "The rename of a symbol from OLD to NEW, names, which a model has asked for.
SERVER is the language server.  Its ANSWER is called once with the facts about
the end, see `gemini-companion-rename-ask'.  UNTIL is the time, in seconds,
until which the language server may go on to load files.

FILES is nil until the rename is open, then a list of
`gemini-companion-rename-file'.  ELSEWHERE are the other files with the word
OLD, absolute names, or `unknown'.  UNSHARED are such files that are not shared
with CLIs; only the user sees their names."
  old new server until files elsewhere unshared)

(cl-defstruct (gemini-companion-rename-file
               (:noinline t)
               (:constructor gemini-companion-rename--make-file
                             (name bytes new before after odd))
               (:copier nil))
  "A file that a rename changes.
NAME is its true name, BYTES its contents, and NEW the bytes to write.  BEFORE
and AFTER are the texts, with plain line ends, and PATCH is what differs.  ODD is
non-nil if that is more than the name."
  name bytes new before after odd patch)

(defvar gemini-companion-rename--current nil
  "The rename that has not ended, or nil.")

;;;; What a rename may change

(defun gemini-companion-rename--check-names (old new)
  "Signal a `user-error' unless NEW can be a name in place of OLD."
  (unless (string-match-p "\\`[[:alpha:]_$][[:alnum:]_$]*[?!]?\\'" new)
    (user-error "Cannot rename to %s; a name has letters, digits, _ and $, begins \
with no digit, and may end with ? or !"
                (gemini-companion-text-escaped-line new 60)))
  (when (equal old new)
    (user-error "The symbol already has the name %s; nothing to rename" new)))

(defun gemini-companion-rename--check-line (file symbol line)
  "Signal a `user-error' unless SYMBOL occurs in FILE, and on LINE if non-nil.
A symbol on a nearby line may be another one with that name."
  (let ((lines (mapcar #'car (gemini-companion-lookup-occurrences file symbol))))
    (unless (or (null line) (memq line lines))
      (user-error "The word %s is not on line %d of %s; ask with one of its \
lines: %s"
                  symbol line file (gemini-companion-rename--numbers lines)))))

(defun gemini-companion-rename--numbers (lines)
  "Return the first of LINES, numbers, as a text."
  (concat (mapconcat #'number-to-string (seq-take lines 20) ", ")
          (and (length> lines 20)
               (format " and %d more" (- (length lines) 20)))))

(defun gemini-companion-rename--no-effect (rename file line)
  "Signal a `user-error', as the server has no changes for RENAME.
The model has named FILE, and LINE or nil."
  (let* ((old (gemini-companion-rename-old rename))
         (lines (mapcar #'car (gemini-companion-lookup-occurrences file old)))
         (asked (or line (car lines)))
         (others (remq asked lines)))
    (if others
        (user-error "The language server renames nothing at %s on line %d; ask \
with another one of its lines: %s"
                    old asked (gemini-companion-rename--numbers others))
      (user-error "The language server renames nothing at %s on line %d; ask the \
user" old asked))))

(defun gemini-companion-rename--only-p (before after old new)
  "Return non-nil if only the name OLD for NEW differs between BEFORE and AFTER.
BEFORE and AFTER are texts."
  (let ((case-fold-search nil)
        (either (regexp-opt (list old new))))
    (equal (replace-regexp-in-string either new before t t)
           (replace-regexp-in-string either new after t t))))

(defun gemini-companion-rename--count (word text)
  "Return how often WORD, a name, is a whole word in TEXT."
  (let ((count 0))
    (with-temp-buffer
      (insert text)
      (goto-char (point-min))
      (let ((case-fold-search nil))
        (while (search-forward word nil t)
          (unless (or (gemini-companion-rename--inside-p (match-beginning 0))
                      (gemini-companion-rename--inside-p (match-end 0)))
            (cl-incf count)))))
    count))

(defun gemini-companion-rename--inside-p (position)
  "Return non-nil if the characters around POSITION are both of names."
  (and (< (point-min) position (point-max))
       (save-excursion
         (goto-char (1- position))
         (looking-at-p "[[:alnum:]_$]\\{2\\}"))))

(defun gemini-companion-rename--lines (before after)
  "Return the numbers of the lines, from 1, in which BEFORE and AFTER differ."
  (cl-loop for old in (split-string before "\n")
           for new in (split-string after "\n")
           for line from 1
           unless (equal old new) collect line))

(defun gemini-companion-rename--unwritable-reason (name)
  "Return why a rename cannot change the file NAME, a true name, or nil.
The value is a verb phrase."
  (let ((buffer (gemini-companion-names-buffer name)))
    (cond ((or (file-remote-p name) (gemini-companion-names-of-copy name))
           "is on another host")
          ((not (file-regular-p name)) "does not exist")
          ((gemini-companion-step-unwritable-reason name))
          ((and buffer (buffer-modified-p buffer)) "has unsaved changes in Emacs")
          ((and buffer
                (not (verify-visited-file-modtime buffer))
                (not (equal (gemini-companion-text-of-buffer buffer)
                            (gemini-companion-text-normalized
                             (gemini-companion-text-read name)))))
           ;; The language server has read the buffer.
           "has changed on disk, but not in Emacs")
          ((stringp (file-locked-p name)) "is being edited in another Emacs")
          ((< gemini-companion-rename--largest-file
              (file-attribute-size (file-attributes name)))
           "is too large"))))

(defun gemini-companion-rename--check-file (name)
  "Signal a `user-error' unless a rename may change the file NAME.
NAME is a true name, or nil if the edit is not of a file.  The error is for the
model, and names no file that is not shared."
  (unless (and name
               (gemini-companion-context-name-shared-p name)
               (car (gemini-companion-roots-outermost name)))
    (user-error "The rename would also change files that Emacs does not share; \
ask the user"))
  (when-let* ((reason (gemini-companion-rename--unwritable-reason name)))
    (user-error "The rename would change %s, which %s; ask the user" name reason)))

(defun gemini-companion-rename--bytes (name)
  "Return the bytes of the file NAME; signal a `user-error' if they are not text.
A text that Emacs writes back has the line ends and the byte order mark that
it had."
  (let ((bytes (gemini-companion-text-bytes name)))
    (unless (gemini-companion-coding-utf-8-p bytes)
      (user-error "The rename would change %s, which is not UTF-8; ask the user \
to convert it"
                  name))
    (when (string-search "\r" (string-replace "\r\n" "\n" bytes))
      (user-error "The rename would change %s, whose line ends are CR; ask the \
user to convert it"
                  name))
    bytes))

(defun gemini-companion-rename--file (change units old new)
  "Return the file of CHANGE, or nil if that has no effect.
CHANGE is a list (FILE EDIT...), of `gemini-companion-eglot-changes', with
columns counted by UNITS.  Signal a `user-error' if the file may not be
changed.  OLD and NEW are the names."
  (let ((name (gemini-companion-text-true-name (car change))))
    (gemini-companion-rename--check-file name)
    (let* ((bytes (gemini-companion-rename--bytes name))
           (text (decode-coding-string bytes 'utf-8-unix))
           (before (gemini-companion-text-normalized text))
           (after (gemini-companion-text-normalized
                   (gemini-companion-eglot-edited text (cdr change) units))))
      (unless (equal before after)
        (gemini-companion-rename--make-file
         name bytes
         (gemini-companion-text-utf-8 (gemini-companion-lines-fit after text))
         before after
         (not (gemini-companion-rename--only-p before after old new)))))))

;;;; From the question to the review

(defmacro gemini-companion-rename--unless-ended (rename &rest body)
  "Evaluate BODY unless RENAME has ended; if that fails, RENAME has."
  (declare (indent 1) (debug t))
  `(when (eq ,rename gemini-companion-rename--current)
     (gemini-companion-lookup-guarded
         (apply-partially #'gemini-companion-rename--end ,rename)
       ,@body)))

(defun gemini-companion-rename-ask (facts answer)
  "Compute the rename of FACTS, show it, and call ANSWER at its end.
FACTS is a plist with the `:path' in which the `:symbol' occurs, its `:line'
or nil, the `:new' name, the `:id' of the question, the `:directory' of the CLI,
and the `:client' with its `:pids'.  The argument of ANSWER is a plist:
`:problem', a string; or `:refused', the string refused, with the `:reason' of
the user, or nil; changed, if a file was; or ended, if the review was closed; or
`:files', of `gemini-companion-rename--renamed', and `:elsewhere', the other
files with the old name, or `unknown'; or `:left', if a file could not be
written: the files that could not be restored then."
  (pcase-let (((map :path :symbol :line :new :id :directory) facts))
    (let ((rename (gemini-companion-rename--make
                   :session (or (gemini-companion-permission-session-of facts)
                                (gemini-companion-session-unconnected
                                 (plist-get facts :client)))
                   :id id :old symbol :new new :answer answer :directory directory
                   :until (+ (float-time) gemini-companion-rename--patience))))
      ;; Gemini CLI reports only the end of the call, after the rename.
      (gemini-companion-state-report (gemini-companion-rename-session rename)
                                     'progress nil)
      (gemini-companion-lookup-guarded answer
        (gemini-companion-rename--check-names symbol new)
        (when (or (gemini-companion-edits-open) gemini-companion-rename--current)
          (user-error "The user has other edits to review; ask again after that"))
        (let* ((file (gemini-companion-lookup-true-name path))
               (server (gemini-companion-eglot-server
                        (gemini-companion-lookup-buffer file))))
          (gemini-companion-rename--check-line file symbol line)
          (setf (gemini-companion-rename-server rename) server
                gemini-companion-rename--current rename)
          (gemini-companion-eglot-decline server t)
          (gemini-companion-rename--query rename file line nil))))))

(defun gemini-companion-rename--query (rename file line last)
  "Ask the language server for RENAME, of the symbol on LINE of FILE.
LAST is a list of its last answer, a list of files, or nil if there is none."
  (gemini-companion-rename--unless-ended rename
    (let ((fail (apply-partially #'gemini-companion-rename--end rename))
          (units (gemini-companion-eglot-units
                  (gemini-companion-lookup-buffer file)))
          (old (gemini-companion-rename-old rename))
          (new (gemini-companion-rename-new rename)))
      (gemini-companion-lookup-query-server
       file old line `((:textDocument/rename :newName ,new))
       fail
       (lambda (results)
         (let ((changes (gemini-companion-eglot-changes (car results))))
           (when (length> changes gemini-companion-rename--most-files)
             (user-error "The rename would change %d files; %d is the limit; ask \
the user"
                         (length changes) gemini-companion-rename--most-files))
           (gemini-companion-rename--map
            rename
            (lambda (change)
              (gemini-companion-rename--file change units old new))
            (seq-sort-by #'car #'string<
                         (gemini-companion-rename--by-file changes))
            (lambda (files)
              (gemini-companion-rename--compare rename file line
                                                last (delq nil files))))))))))

(defun gemini-companion-rename--by-file (changes)
  "Return CHANGES with one element for each file, by its true name.
CHANGES is a list of (FILE EDIT...).  A server may name a file also by its
symbolic links, with the same edits for each name."
  (mapcar (pcase-lambda (`(,name . ,group))
            (cons name (delete-dups (seq-mapcat #'cdr group))))
          (seq-group-by (pcase-lambda (`(,file . ,_))
                          (or (gemini-companion-text-true-name file) file))
                        changes)))

(defun gemini-companion-rename--map (rename function list then)
  "Call THEN with the values of FUNCTION for each element of LIST, in slices.
If one fails, RENAME has failed."
  (let ((failure nil))
    (gemini-companion-lookup-map-in-slices
     (lambda (element)
       (when (and (null failure) (eq rename gemini-companion-rename--current))
         (gemini-companion-lookup-guarded
             (lambda (facts) (setq failure facts))
           (list (funcall function element)))))
     list
     (lambda (values)
       (if failure
           (gemini-companion-rename--end rename failure)
         (gemini-companion-rename--unless-ended rename
           (funcall then values)))))))

(defun gemini-companion-rename--compare (rename file line last files)
  "Go on with FILES of RENAME if they were the LAST answer, or ask again.
FILE, LINE and LAST are as for `gemini-companion-rename--query'.  Two servers
of five name a part of the files first."
  (let ((busy (gemini-companion-errors-busy-p
               (gemini-companion-eglot-server
                (gemini-companion-lookup-buffer file)))))
    (cond ((and (equal last (list files)) (not busy))
           (unless files
             (gemini-companion-rename--no-effect rename file line))
           (gemini-companion-rename--search rename file files))
          ((< (gemini-companion-rename-until rename) (float-time))
           (user-error "The language server %s; ask again later"
                       (if busy "is still loading" "keeps changing its answer")))
          (t
           (run-at-time gemini-companion-rename--pause nil
                        #'gemini-companion-rename--query
                        rename file line (list files))))))

(defun gemini-companion-rename--search (rename file files)
  "Find the other files with the old name of RENAME, and open it with FILES.
FILE is the one that the model has named."
  (gemini-companion-words-search
   (gemini-companion-rename-old rename)
   (gemini-companion-eglot-root (gemini-companion-lookup-buffer file))
   (lambda (names)
     (gemini-companion-rename--unless-ended rename
       (gemini-companion-lookup-shared
        (and (listp names) (mapcar #'list names))
        (lambda (shared)
          (let ((shared (mapcar #'car shared)))
            (setf (gemini-companion-rename-elsewhere rename)
                  (if (listp names)
                      (seq-difference shared
                                      (mapcar #'gemini-companion-rename-file-name
                                              files))
                    names)
                  (gemini-companion-rename-unshared rename)
                  (when (and (listp names) (length> names (length shared)))
                    (seq-difference
                     (delete-dups
                      (delq nil (mapcar #'gemini-companion-text-true-name names)))
                     shared))))
          (gemini-companion-rename--open rename files)))))))

(defun gemini-companion-rename--open (rename files)
  "Show RENAME, which changes FILES, to the user."
  (gemini-companion-rename--map
   rename
   (lambda (file)
     (pcase-let (((cl-struct gemini-companion-rename-file name bytes before after)
                  file))
       ;; The file may have changed while other files were read.
       (gemini-companion-rename--check-file name)
       (unless (equal bytes (gemini-companion-text-bytes name))
         (user-error "%s has changed meanwhile; ask again" name))
       (setf (gemini-companion-rename-file-patch file)
             (gemini-companion-text-unified before after))
       file))
   files
   (lambda (files)
     (when (< gemini-companion-rename-longest
              (cl-loop for file in files
                       sum (length (gemini-companion-rename-file-patch file))))
       (user-error "The rename would change more than a user can read; ask the user"))
     (gemini-companion-eglot-decline (gemini-companion-rename-server rename) nil)
     (setf (gemini-companion-rename-files rename) files
           (gemini-companion-rename-since rename) (float-time)
           (gemini-companion-rename-command rename)
           (gemini-companion-rename--phrase rename)
           (gemini-companion-rename-summary rename)
           (gemini-companion-rename-command rename))
     (gemini-companion-permission-open rename))))

;;;; The end

(defun gemini-companion-rename--end (rename &optional facts)
  "End RENAME, unless it has, and answer its question with FACTS, a plist.
By default, they are that its review was closed."
  (when (eq rename gemini-companion-rename--current)
    (setq gemini-companion-rename--current nil)
    (gemini-companion-eglot-decline (gemini-companion-rename-server rename) nil)
    (gemini-companion-permission-close rename 'ended)
    (funcall (gemini-companion-rename-answer rename)
             (or facts '(:refused "ended")))))

(defun gemini-companion-rename--end-current ()
  "End the rename that has not ended, if there is one, shown or not."
  (when gemini-companion-rename--current
    (gemini-companion-rename--end gemini-companion-rename--current)))

(cl-defmethod gemini-companion-permission-closed ((rename gemini-companion-rename))
  "End RENAME, whose CLI has exited."
  (gemini-companion-rename--end rename))

(cl-defmethod gemini-companion-permission-return ((rename gemini-companion-rename))
  "End RENAME, which no CLI can show in its terminal."
  (gemini-companion-rename--end rename))

(cl-defmethod gemini-companion-request-interrupted ((rename gemini-companion-rename))
  "End RENAME, which the user has interrupted in the terminal of its CLI."
  (gemini-companion-rename--end rename))

(defun gemini-companion-rename--follow-state (session state)
  "End a rename for SESSION, in STATE, that is still computed after its turn.
Gemini CLI does not report that the user has interrupted a call.  Others do, and
their report of an earlier end may come after the call."
  (let ((rename gemini-companion-rename--current)
        (turn (gemini-companion-session-turn session)))
    (cond ((not (and rename
                     (gemini-companion-client-hides-interrupts-p
                      (gemini-companion-session-client session))
                     (null (gemini-companion-rename-files rename))
                     (gemini-companion-session-same-p
                      session (gemini-companion-rename-session rename)))))
          ((and turn (< (gemini-companion-rename-since rename)
                        (gemini-companion-turn-began turn)))
           (gemini-companion-rename--end rename))
          ((eq state 'ready)
           (run-at-time 1 nil
                        (lambda ()
                          (when (eq 'ready (gemini-companion-session-state session))
                            (gemini-companion-rename--end rename))))))))

(cl-defmethod gemini-companion-server-receive :before
  ((_method (eql 'withdrawn)) id _how)
  "End the rename with ID, for whose answer no one waits any more."
  (when (and gemini-companion-rename--current
             (equal id (gemini-companion-rename-id gemini-companion-rename--current)))
    (gemini-companion-rename--end gemini-companion-rename--current)))

;;;; The answer of the user

(cl-defmethod gemini-companion-request-answer
  ((rename gemini-companion-rename) answer)
  "Answer RENAME by ANSWER: write all its files, or none."
  (pcase answer
    ('allow (gemini-companion-rename--write rename))
    (_ (gemini-companion-rename--end
        rename (list :refused "refused" :reason (cdr-safe answer))))))

(defun gemini-companion-rename--write (rename)
  "Write the files of RENAME, all or none, and answer its question.
If that fails, signal a `user-error' that says what became of them."
  (let ((files (gemini-companion-rename-files rename)))
    (dolist (file files)
      (when-let* ((name (gemini-companion-rename-file-name file))
                  (reason (if (gemini-companion-context-name-shared-p name)
                              (gemini-companion-rename--unwritable-reason name)
                            "is not shared with CLIs any more")))
        (user-error "Nothing was renamed: %s %s"
                    (gemini-companion-label-file
                     name (gemini-companion-rename-session rename) 'plain)
                    reason)))
    (pcase (gemini-companion-rename--write-files files)
      ('nil
       (gemini-companion-rename--record rename files)
       (gemini-companion-rename--end
        rename (list :files (mapcar (apply-partially #'gemini-companion-rename--renamed
                                                     rename)
                                    files)
                     :elsewhere (gemini-companion-rename--elsewhere-shared rename))))
      (`(,problem . ,left)
       (let ((names (mapcar #'gemini-companion-rename-file-name left)))
         (gemini-companion-rename--record rename left)
         (gemini-companion-rename--end
          rename (if (or left (not (eq 'gemini-companion-text-changed (car problem))))
                     (list :left names)
                   '(:refused "changed")))
         (user-error "%s: %s"
                     (if left
                         (format "Part of the rename is written, in %s"
                                 (string-join names ", "))
                       "Nothing was renamed")
                     (error-message-string problem)))))))

(defun gemini-companion-rename--write-files (files)
  "Write FILES, all or none, and return nil.
If one has other bytes than those that were shown, or cannot be written, those
before get their bytes back; return a list of the error and of the files where
that has failed."
  (let ((inhibit-quit t)
        (done nil))
    (cl-flet ((rewrite (file old new)
                (gemini-companion-watch-writing (gemini-companion-rename-file-name file)
                  (gemini-companion-text-rewrite
                   (gemini-companion-rename-file-name file) old new))))
      (condition-case problem
          (dolist (file files)
            (rewrite file (gemini-companion-rename-file-bytes file)
                     (gemini-companion-rename-file-new file))
            (push file done))
        (error
         (cons problem
               (seq-remove (lambda (file)
                             (ignore-errors
                               (rewrite file (gemini-companion-rename-file-new file)
                                        (gemini-companion-rename-file-bytes file))
                               t))
                           done)))))))

(defun gemini-companion-rename--record (rename files)
  "Record that RENAME, which the user has allowed, has written FILES.
Undoing them is one decision."
  ;; The model gets what was written, whatever fails here.
  (gemini-companion-log-guarded "Recording a rename"
    (let ((command (gemini-companion-rename--names rename)))
      (gemini-companion-undo-record
       ;; Of large files, the first edits may be forgotten before the last one is made.
       (mapcar (pcase-lambda ((cl-struct gemini-companion-rename-file name bytes new))
                 (prog1 (gemini-companion-reported-bytes
                         (gemini-companion-rename-session rename) name bytes new
                         command :answer 'accepted)
                   (gemini-companion-revert name)))
               files)
       command)))
  ;; A server may not watch files itself.
  (gemini-companion-log-guarded 'rename
    (gemini-companion-eglot-changed
     (gemini-companion-rename-server rename)
     (mapcar #'gemini-companion-rename-file-name files))))

(defun gemini-companion-rename--elsewhere-shared (rename)
  "Return the other files with the old name of RENAME that are shared now."
  (let ((elsewhere (gemini-companion-rename-elsewhere rename)))
    (if (listp elsewhere)
        (seq-filter #'gemini-companion-context-name-shared-p elsewhere)
      elsewhere)))

(defun gemini-companion-rename--renamed (rename file)
  "Return what RENAME has written in FILE, a list (NAME LINES LEFT).
LINES are the numbers of the lines that have changed, and LEFT is how often the
old name is left."
  (pcase-let (((cl-struct gemini-companion-rename-file name before after) file))
    (list name
          (gemini-companion-rename--lines before after)
          (gemini-companion-rename--count (gemini-companion-rename-old rename) after))))

;;;; Text

(define-derived-mode gemini-companion-rename-mode gemini-companion-permission-mode
  "Rename"
  "Mode of a buffer with a rename of several files, which a model has asked for.

\\{gemini-companion-rename-mode-map}"
  :interactive nil
  (gemini-companion-commands-letters-are-keys 'gemini-companion-rename-mode))

(cl-defmethod gemini-companion-permission-major-mode ((_rename gemini-companion-rename))
  "Return the mode for a rename."
  'gemini-companion-rename-mode)

(cl-defmethod gemini-companion-permission-context ((_rename gemini-companion-rename))
  "Return the context of the keys of a rename."
  'rename)

(defun gemini-companion-rename--names (rename)
  "Return what RENAME does, such as: rename one → uno."
  (format "rename %s %s %s" (gemini-companion-rename-old rename)
          (gemini-companion-text-sign ?\u2192 "->")
          (gemini-companion-rename-new rename)))

(defun gemini-companion-rename--phrase (rename)
  "Return what RENAME does, such as: rename one → uno, 7 places in 3 files."
  (let* ((new (gemini-companion-rename-new rename))
         (files (gemini-companion-rename-files rename))
         (places (cl-loop
                  for file in files
                  sum (- (gemini-companion-rename--count
                          new (gemini-companion-rename-file-after file))
                         (gemini-companion-rename--count
                          new (gemini-companion-rename-file-before file))))))
    (concat (gemini-companion-rename--names rename)
            (format (ngettext ", %d place" ", %d places" places) places)
            (format (ngettext " in %d file" " in %d files" (length files))
                    (length files)))))

(cl-defmethod gemini-companion-permission-insert ((rename gemini-companion-rename))
  "Insert RENAME, what its language server has not said, and its patch.
A line of a file has a sign or a blank before it, so that it cannot imitate a
line of Emacs."
  (insert (propertize (gemini-companion-rename-command rename) 'face 'bold) "\n")
  (gemini-companion-request-insert rename)
  (dolist (file (gemini-companion-rename-files rename))
    (insert "\n")
    (gemini-companion-permission-insert-row
     "File" (concat (gemini-companion-label-file
                     (gemini-companion-rename-file-name file)
                     (gemini-companion-rename-session rename))
                    (and (gemini-companion-rename-file-odd file)
                         (propertize "  changes more than the name" 'face 'warning))))
    (dolist (line (split-string (gemini-companion-rename-file-patch file) "\n" t))
      (insert (propertize
               ;; In code, tabs are usual.
               (mapconcat #'gemini-companion-text-escaped (split-string line "\t") "\t")
               'face (pcase (aref line 0)
                       (?- 'gemini-companion-removed)
                       (?+ 'gemini-companion-added)
                       (?@ 'shadow)))
              "\n")))
  (insert "\n")
  (let ((start (point)))
    (gemini-companion-permission-insert-facts rename)
    (add-face-text-property start (point) 'shadow 'append)))

(cl-defmethod gemini-companion-request-insert ((rename gemini-companion-rename))
  "Insert what the language server has not said of RENAME, without the patch."
  (dolist (line (gemini-companion-rename--unsaid rename))
    (insert line "\n")))

(defun gemini-companion-rename--unsaid (rename)
  "Return what the language server has not said of RENAME, a list of lines."
  (let* ((names (lambda (files)
                  (concat
                   (mapconcat (lambda (file)
                                (gemini-companion-label-file
                                 file (gemini-companion-rename-session rename) 'plain))
                              (seq-take files 5) ", ")
                   (and (length> files 5)
                        (format " and %d more" (- (length files) 5))))))
         (old (gemini-companion-rename-old rename))
         (new (gemini-companion-rename-new rename))
         (elsewhere (gemini-companion-rename-elsewhere rename))
         (unshared (gemini-companion-rename-unshared rename))
         (taken (cl-loop for file in (gemini-companion-rename-files rename)
                         when (< 0 (gemini-companion-rename--count
                                    new (gemini-companion-rename-file-before file)))
                         collect (gemini-companion-rename-file-name file))))
    (delq nil
          (list (when taken
                  (propertize (format "%s is already in %s" new (funcall names taken))
                              'face 'warning))
                (cond ((eq 'unknown elsewhere)
                       (propertize
                        (format "Other files with %s are unknown: Git was missing, \
failed or took too long" old)
                        'face 'warning))
                      (elsewhere
                       (propertize (format "%s stays in %s" old
                                           (funcall names elsewhere))
                                   'face 'warning))
                      ((null unshared) (format "No other file has %s" old)))
                (when unshared
                  (propertize (format "%s stays in %s, not shared with CLIs"
                                      old (funcall names unshared))
                              'face 'warning))))))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'rename)))
  "End the rename that has not ended with those who wait for it."
  '((gemini-companion-state-functions gemini-companion-rename--follow-state)
    (gemini-companion-server-crash-hook gemini-companion-rename--end-current)
    (gemini-companion-context-pause-hook gemini-companion-rename--end-current)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'rename)))
  "End the rename that has not ended."
  (gemini-companion-rename--end-current))

(provide 'gemini-companion-rename)
;;; gemini-companion-rename.el ends here
