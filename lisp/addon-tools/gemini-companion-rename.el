;;; gemini-companion-rename.el --- Renames by a language server, reviewed as one  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A model asks for the rename of a symbol.  The language server computes it, and
;; each file becomes an edit of one group, which is one request: it is answered as a
;; whole, and then Emacs writes all files or none.
;;
;; Some language servers rename only some of the occurrences without reporting that,
;; accept a name that exists already, or drop unsaved lines.  So the request is
;; repeated until two answers are equal, each file is checked for changes other than
;; the name, and the other files with the old name are listed for the user and the
;; model.  A rename that is too large for a user to judge is refused before anything is
;; displayed.

;;; Code:

(require 'gemini-companion-attribution)
(require 'gemini-companion-code)
(require 'gemini-companion-coding)
(require 'gemini-companion-comment)
(require 'gemini-companion-context)
(require 'gemini-companion-edit)
(require 'gemini-companion-edit-texts)
(require 'gemini-companion-eglot)
(require 'gemini-companion-errors)
(require 'gemini-companion-hunk)
(require 'gemini-companion-label)
(require 'gemini-companion-lines)
(require 'gemini-companion-lookup)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-permission)
(require 'gemini-companion-proposal)
(require 'gemini-companion-request)
(require 'gemini-companion-revert)
(require 'gemini-companion-roots)
(require 'gemini-companion-server)
(require 'gemini-companion-log)
(require 'gemini-companion-text)
(require 'gemini-companion-watch)
(require 'gemini-companion-words)
(require 'map)

(declare-function gemini-companion-overview-appear "gemini-companion-overview")
(declare-function gemini-companion-overview-buffer "gemini-companion-overview")
(declare-function gemini-companion-overview-show "gemini-companion-overview")

;;;; State

(defconst gemini-companion-rename-tool "rename_symbol"
  "The name of the tool of the model.")

(defvar gemini-companion-rename--pause 1
  "Seconds between two questions to a language server about one rename.")

(defvar gemini-companion-rename--patience 30
  "Seconds after which a server without two equal answers has none.")

(defvar gemini-companion-rename--errors-seconds 6
  "Seconds after which no other written file is checked for new errors.
The model waits for the answer.")

(defconst gemini-companion-rename--most-files 100
  "Number of files that a rename may change.")

(defconst gemini-companion-rename--most-checked 20
  "Number of files that are checked for new errors.")

(defconst gemini-companion-rename--largest-file (* 1024 1024)
  "Size in bytes of the largest file that a rename may change.")

(cl-defstruct (gemini-companion-rename
               (:noinline t)
               (:include gemini-companion-request (kind 'rename))
               (:constructor gemini-companion-rename--make)
               (:copier nil))
  "The rename of a symbol from OLD to NEW, names, which a model has asked for.
ID is that of the question, a string, SERVER the language server, and ANSWER
the function that is called once with the facts about the end; see
`gemini-companion-rename-ask'.  UNTIL is the time, in seconds, until which
the language server may go on to load files.

EDITS is nil until the rename is open, then one for each file.  ELSEWHERE are
the other files with the word OLD, absolute names, or `unknown'.  UNSHARED are
such files that are not shared with CLIs; only the user is told of them.  TAKEN
are those of its files that have the word NEW already.  OUTCOME is nil until
it has ended; then `written', `refused', `changed', `failed' or `ended'.
APPEARED is non-nil once it need not appear any more.  ERRORS is an alist
of edits and the errors of their files before, of `gemini-companion-errors-find'."
  id old new server answer until edits elsewhere unshared taken outcome appeared
  errors)

(cl-defstruct (gemini-companion-rename--file
               (:noinline t)
               (:constructor gemini-companion-rename--make-file (name bytes text odd))
               (:copier nil))
  "A file that a rename changes.
NAME is its true name, BYTES its contents, TEXT the new text, with the line
ends and the byte order mark of the file, and ODD non-nil if that differs in
more than the name."
  name bytes text odd)

(defvar gemini-companion-rename--current nil
  "The renames that have not ended, oldest first.")

(defun gemini-companion-rename--all-open ()
  "Return the renames that await an answer of the user."
  (seq-filter #'gemini-companion-rename-edits gemini-companion-rename--current))

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
          ((not (file-writable-p name)) "is read-only")
          ((and buffer (buffer-modified-p buffer)) "has unsaved changes in Emacs")
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

(defun gemini-companion-rename--check-files (rename)
  "Signal a `user-error' for the user if a file of RENAME cannot be written."
  (dolist (edit (gemini-companion-rename-edits rename))
    (when-let* ((reason (gemini-companion-rename--unwritable-reason
                         (gemini-companion-edit-true-name edit))))
      (user-error "%s %s" (gemini-companion-edit-name edit) reason))))

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
         name bytes (gemini-companion-lines-fit after text)
         (not (gemini-companion-rename--only-p before after old new)))))))

;;;; From the question to the review

(defmacro gemini-companion-rename--unless-ended (rename &rest body)
  "Evaluate BODY unless RENAME has ended; if that fails, RENAME has."
  (declare (indent 1) (debug t))
  `(unless (gemini-companion-rename-outcome ,rename)
     (gemini-companion-lookup-guarded
         (apply-partially #'gemini-companion-rename--fail ,rename)
       ,@body)))

(defun gemini-companion-rename-ask (facts answer)
  "Compute the rename of FACTS, show it, and call ANSWER at its end.
FACTS is a plist with the `:path' in which the `:symbol' occurs, its `:line'
or nil, the `:new' name, the `:id' of the question, and the `:client' with
its `:pids'.  The argument of ANSWER is a plist: `:problem', a string; or
`:refused', the string refused, with the `:reason' of the user, or nil;
changed, if a file was; or ended, if the review was closed; or `:files', of
`gemini-companion-rename--renamed', `:elsewhere', the other files with the
old name, or `unknown', and `:errors', plists of
`gemini-companion-errors-after-edit'; or `:left', if a file could not be
written: the files that could not be restored then."
  (pcase-let (((map :path :symbol :line :new :id) facts))
    (let ((rename (gemini-companion-rename--make
                   :session (or (gemini-companion-permission-session-of facts)
                                (gemini-companion-session-unconnected
                                 (plist-get facts :client)))
                   :id id :old symbol :new new :answer answer
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
          (push rename gemini-companion-rename--current)
          (setf (gemini-companion-rename-server rename) server)
          (gemini-companion-eglot-decline server t)
          (gemini-companion-rename--query rename file line nil))))))

(defun gemini-companion-rename--query (rename file line last)
  "Ask the language server for RENAME, of the symbol on LINE of FILE.
LAST is a list of its last answer, a list of files, or nil if there is none."
  (gemini-companion-rename--unless-ended rename
    (let ((fail (apply-partially #'gemini-companion-rename--fail rename))
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
       (unless (or failure (gemini-companion-rename-outcome rename))
         (gemini-companion-lookup-guarded
             (lambda (facts) (setq failure facts))
           (list (funcall function element)))))
     list
     (lambda (values)
       (if failure
           (gemini-companion-rename--fail rename failure)
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
                                      (mapcar #'gemini-companion-rename--file-name
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
  "Propose FILES as the edits of RENAME, and announce it."
  (gemini-companion-rename--map
   rename
   (lambda (file)
     (let ((id (gensym "rename"))
           (name (gemini-companion-rename--file-name file)))
       ;; The file may have changed while other files were read.
       (gemini-companion-rename--check-file name)
       (unless (equal (gemini-companion-rename--file-bytes file)
                      (gemini-companion-text-bytes name))
         (user-error "%s has changed meanwhile; ask again" name))
       (gemini-companion-proposal-open
        id (gemini-companion-rename-session rename) name
        ;; The text before is displayed as the CLI sees it.
        (gemini-companion-edit-texts-plain
         (gemini-companion-session-client (gemini-companion-rename-session rename))
         (gemini-companion-rename--file-text file))
        rename)
       (let ((edit (gemini-companion-edit-of-id id)))
         (when (gemini-companion-rename--file-odd file)
           (gemini-companion-proposal-set-reason edit "changes more than the name"))
         (when (< 0 (gemini-companion-rename--count
                     (gemini-companion-rename-new rename)
                     (gemini-companion-edit-texts-before edit)))
           (push name (gemini-companion-rename-taken rename)))
         edit)))
   files
   (lambda (edits)
     (gemini-companion-eglot-decline (gemini-companion-rename-server rename) nil)
     (setf (gemini-companion-rename-edits rename) edits
           (gemini-companion-rename-since rename) (float-time))
     (cl-callf nreverse (gemini-companion-rename-taken rename))
     (if (seq-every-p #'gemini-companion-edit-open-p edits)
         (progn
           (gemini-companion-request-notify rename 'opened)
           (gemini-companion-rename--find-errors-before rename))
       (gemini-companion-rename--end rename 'changed)))))

;;;; The end

(defun gemini-companion-rename--fail (rename facts)
  "End RENAME, which is not possible; FACTS is a plist with the `:problem'."
  (gemini-companion-rename--end rename 'failed facts))

(defun gemini-companion-rename--end (rename outcome &optional facts)
  "End RENAME by OUTCOME, and answer its question with FACTS, a plist.
By default, they are that it was refused."
  (unless (gemini-companion-rename-outcome rename)
    (gemini-companion-rename--close rename outcome)
    (funcall (gemini-companion-rename-answer rename)
             (or facts (list :refused (symbol-name outcome))))))

(defun gemini-companion-rename--close (rename outcome)
  "Close the review of RENAME, which ends by OUTCOME.
Its edits that are still open are accepted if their files were written, else
rejected."
  (setf (gemini-companion-rename-outcome rename) outcome)
  (gemini-companion-eglot-decline (gemini-companion-rename-server rename) nil)
  (setq gemini-companion-rename--current
        (remq rename gemini-companion-rename--current))
  (dolist (edit (gemini-companion-edits-open))
    (when (eq rename (gemini-companion-edit-group edit))
      (gemini-companion-proposal-decide-in-group
       edit
       (if (and (eq outcome 'written)
                (gemini-companion-rename--lines-of edit))
           'accepted
         'rejected))))
  (when (gemini-companion-rename-edits rename)
    (gemini-companion-request-notify rename 'closed)))

(cl-defmethod gemini-companion-request-follow-edit
  ((rename gemini-companion-rename) edit event)
  "End RENAME if EVENT is that EDIT has ended, or that its file has changed.
Half a rename is none."
  (pcase event
    ('file-changed (gemini-companion-rename--end rename 'changed))
    ('decided (gemini-companion-rename--end
               rename
               (if (eq 'rejected (gemini-companion-edit-decision edit))
                   'refused
                 'ended))))
  (cl-call-next-method))

(cl-defmethod gemini-companion-server-receive
  ((_method (eql 'rename-withdrawn)) id _how)
  "End the rename with ID, for whose answer no one waits any more."
  (when-let* ((rename (cl-find id gemini-companion-rename--current
                               :key #'gemini-companion-rename-id :test #'equal)))
    (gemini-companion-rename--end rename 'ended)))

;;;; The answer of the user

(cl-defmethod gemini-companion-request-answer
  ((rename gemini-companion-rename) answer)
  "Answer RENAME by ANSWER: write all its files, or none."
  (pcase answer
    ('allow (gemini-companion-rename--accept rename))
    ('refuse (gemini-companion-rename--refuse rename ""))
    (`(refuse . ,reason) (gemini-companion-rename--refuse rename reason))))

(defun gemini-companion-rename--refuse (rename reason)
  "Refuse RENAME for REASON, unless that is blank, and the comments on it."
  (let* ((edits (gemini-companion-rename-edits rename))
         (comments (seq-mapcat #'gemini-companion-edit-comments edits))
         (texts (append (unless (string-blank-p reason) (list reason))
                        (seq-mapcat #'gemini-companion-comment-texts-of-edit edits))))
    (when comments
      (gemini-companion-comment-set-going comments))
    (gemini-companion-rename--end
     rename 'refused
     (list :refused "refused" :reason (and texts (string-join texts "\n\n"))))
    (when comments
      (gemini-companion-comment-set-result
       comments (gemini-companion-rename-session rename) 'sent))
    (message "Refused %s" (gemini-companion-rename--phrase rename))))

(defun gemini-companion-rename--accept (rename)
  "Ask whether to accept RENAME, and write its files."
  (dolist (edit (gemini-companion-rename-edits rename))
    (gemini-companion-watch-check (gemini-companion-edit-watch edit) 'command))
  (unless (gemini-companion-rename-outcome rename)
    (gemini-companion-rename--check-files rename)
    (let ((shown (gemini-companion-rename--texts rename)))
      (when (gemini-companion-rename--confirmed-p rename)
        (cond ((gemini-companion-rename-outcome rename)
               (message "This rename has ended already"))
              ((not (equal shown (gemini-companion-rename--texts rename)))
               (user-error "Rename has changed; read it, then type the key again"))
              (t
               (gemini-companion-rename--check-files rename)
               (gemini-companion-rename--write-accepted rename)))))))

(defun gemini-companion-rename--texts (rename)
  "Return the texts that RENAME writes, in the order of its files."
  (mapcar #'gemini-companion-edit-text (gemini-companion-rename-edits rename)))

(defun gemini-companion-rename--write-accepted (rename)
  "Write the files of RENAME, report that, and answer its question."
  (let* ((edits (gemini-companion-rename-edits rename))
         (phrase (gemini-companion-rename--phrase rename))
         (renamed (mapcar #'gemini-companion-rename--renamed edits)))
    (pcase (gemini-companion-rename--write edits)
      ('nil
       ;; The model is told what was written, whatever fails now.
       (gemini-companion-log-guarded "Closing a rename"
         (gemini-companion-rename--close rename 'written)
         (dolist (edit edits)
           (gemini-companion-revert (gemini-companion-edit-file edit))))
       (message "Wrote %s" phrase)
       (let ((facts (list :files renamed
                          :elsewhere (gemini-companion-rename-elsewhere rename))))
         (gemini-companion-rename--find-new-errors
          rename
          (lambda (errors)
            (funcall (gemini-companion-rename-answer rename)
                     (append facts (list :errors errors)))))))
      (`(,problem . ,left)
       (if (or left (not (eq 'gemini-companion-text-changed (car problem))))
           (gemini-companion-rename--end rename 'failed (list :left left))
         (gemini-companion-rename--end rename 'changed))
       (message "%s: %s"
                (if left
                    (format "Part of the rename is written, in %s"
                            (string-join left ", "))
                  "Nothing was renamed")
                (error-message-string problem))))))

(defun gemini-companion-rename--confirmed-p (rename)
  "Return non-nil if the user confirms RENAME.
A key that was typed once too often is no answer if there are cautions."
  (let ((phrase (gemini-companion-rename--phrase rename))
        (cautions (gemini-companion-rename--cautions rename)))
    (if cautions
        ;; `capitalize' would change the names in the phrase.
        (yes-or-no-p (format "%s: %s; write anyway? "
                             (replace-regexp-in-string "\\`." #'upcase phrase t)
                             (string-join cautions ", ")))
      (y-or-n-p (format "Write %s? " phrase)))))

(defun gemini-companion-rename--cautions (rename)
  "Return what the user has to know before RENAME is written, a list of texts."
  (let* ((edits (gemini-companion-rename-edits rename))
         (old (gemini-companion-rename-old rename))
         (elsewhere (gemini-companion-rename-elsewhere rename))
         (excluded (cl-loop for edit in edits
                            sum (length (gemini-companion-hunk-excluded
                                         (gemini-companion-edit-proposal-buffer
                                          edit)))))
         (odd (seq-count #'gemini-companion-edit-review-reason edits))
         (others (if (listp elsewhere) (length elsewhere) 0))
         (unshared (length (gemini-companion-rename-unshared rename))))
    (delq nil
          (list (and (< 0 excluded) (format "%d excluded" excluded))
                (and (< 0 odd)
                     (format (ngettext "%d file changes more"
                                       "%d files change more" odd)
                             odd))
                (and (gemini-companion-rename-taken rename)
                     (format "%s exists already"
                             (gemini-companion-rename-new rename)))
                (and (eq 'unknown elsewhere) "other files were not searched")
                (and (< 0 others)
                     (format (ngettext "%d other file has %s"
                                       "%d other files have %s" others)
                             others old))
                (and (< 0 unshared)
                     (format (ngettext "%d file that is not shared has %s"
                                       "%d files that are not shared have %s"
                                       unshared)
                             unshared old))))))

;;;; The files

(defun gemini-companion-rename--new-bytes (edit)
  "Return the bytes of the file of EDIT once the user's choice is written."
  (gemini-companion-text-utf-8
   (gemini-companion-lines-fit
    (gemini-companion-edit-text edit)
    (gemini-companion-content-text (gemini-companion-edit-content edit)))))

(defun gemini-companion-rename--write (edits)
  "Write the files of EDITS, all or none, and return nil.
If one has other bytes than those that were reviewed, or cannot be written,
those before get their bytes back; return a list of the error and of the
files, true names, where that has failed."
  (let ((inhibit-quit t)
        (done nil))
    ;; A file that has its new text would end the review in the middle.
    (dolist (edit edits)
      (gemini-companion-watch-stop (gemini-companion-edit-watch edit)))
    (condition-case problem
        (dolist (edit edits)
          (let ((file (gemini-companion-edit-true-name edit))
                (old (gemini-companion-edit-bytes-before edit))
                (new (gemini-companion-rename--new-bytes edit)))
            (if (equal old new)
                ;; A file without remaining changes was reviewed as it is.
                (gemini-companion-text-check-bytes file old)
              (gemini-companion-watch-writing file
                (gemini-companion-text-rewrite file old new))
              (push (list file new old) done))))
      (error
       (cons problem
             (cl-loop for (file new old) in done
                      unless (ignore-errors
                               (gemini-companion-watch-writing file
                                 (gemini-companion-text-rewrite file new old))
                               t)
                      collect file))))))

(defun gemini-companion-rename--lines-of (edit)
  "Return the numbers of the changed lines of EDIT, as the user has left it."
  (gemini-companion-rename--lines (gemini-companion-edit-texts-before edit)
                                 (gemini-companion-edit-text edit)))

(defun gemini-companion-rename--renamed (edit)
  "Return what EDIT, which is open, renames, a list (FILE LINES EXCLUDED LEFT).
LINES are the numbers of the lines that change, EXCLUDED those that the user
has excluded, and LEFT is how often the old name is left."
  (let ((lines (gemini-companion-rename--lines-of edit)))
    (list (gemini-companion-edit-true-name edit)
          lines
          (seq-difference (gemini-companion-rename--lines
                           (gemini-companion-edit-texts-before edit)
                           (gemini-companion-edit-proposed edit))
                          lines)
          (gemini-companion-rename--count
           (gemini-companion-rename-old (gemini-companion-edit-group edit))
           (gemini-companion-edit-text edit)))))

;;;; Errors

;; The errors of all files before are compared with those of all files after, as a
;; file that is checked between the writes has errors that no text had.

(defun gemini-companion-rename--each (function list then &optional values)
  "Call FUNCTION with each element of LIST, one after another, and then THEN.
FUNCTION is called with a function to call with a value; THEN with the
values that are non-nil, in order, up to the first `stop'.  VALUES are
those of the elements before, the last one first."
  (if (null list)
      (funcall then (nreverse values))
    (let ((go-on (lambda (value)
                   (when value
                     (push value values))
                   (gemini-companion-rename--each
                    function (if (eq value 'stop) nil (cdr list)) then
                    (remq 'stop values)))))
      (unless (gemini-companion-log-guarded 'rename
                (funcall function (car list) go-on)
                t)
        (funcall go-on 'stop)))))

(defun gemini-companion-rename--find-errors-before (rename)
  "Record the errors of the files of RENAME while the user reviews it.
The first file of which they are not known in time is the last one that is
asked for."
  (gemini-companion-rename--each
   (lambda (edit go-on)
     (if (gemini-companion-rename-outcome rename)
         (funcall go-on 'stop)
       (gemini-companion-errors-find
        (lambda (result)
          (when result
            (push (cons edit result) (gemini-companion-rename-errors rename)))
          (funcall go-on (if result nil 'stop)))
        (gemini-companion-edit-true-name edit)
        (gemini-companion-edit-texts-before edit))))
   (seq-take (gemini-companion-rename-edits rename)
             gemini-companion-rename--most-checked)
   #'ignore))

(defun gemini-companion-rename--find-new-errors (rename then)
  "Find the errors that RENAME, which is written, has introduced.
Call THEN, later, with a list of plists, as `gemini-companion-errors-after-edit'
has them.  They do not include files whose errors are not known within
`gemini-companion-rename--errors-seconds'."
  (let* ((end (+ (float-time) gemini-companion-rename--errors-seconds))
         (find (lambda (edit go-on)
                 (if (< end (float-time))
                     (funcall go-on 'stop)
                   (gemini-companion-rename--find-errors-of rename edit go-on)))))
    (gemini-companion-log-guarded 'rename
      (gemini-companion-eglot-changed
       (gemini-companion-rename-server rename)
       (mapcar #'gemini-companion-edit-true-name
               (gemini-companion-rename-edits rename))))
    (run-at-time
     0 nil
     (lambda ()
       (gemini-companion-rename--each
        find (mapcar #'car (reverse (gemini-companion-rename-errors rename)))
        (lambda (results)
          (if (null results)
              (funcall then nil)
            ;; The language server may not have read the other files yet.
            (run-at-time gemini-companion-rename--pause nil
                         #'gemini-companion-rename--each
                         find (mapcar #'car results)
                         (lambda (results)
                           (funcall then (mapcar #'cdr results)))))))))))

(defun gemini-companion-rename--find-errors-of (rename edit then)
  "Find the new errors of EDIT, whose file RENAME has written.
Call THEN with nil, or with EDIT and their plist."
  (let ((file (gemini-companion-edit-true-name edit))
        (text (gemini-companion-edit-after edit)))
    ;; Reverts are postponed while a command runs, and the errors are those of the buffer.
    (gemini-companion-revert (gemini-companion-edit-file edit))
    (gemini-companion-errors-find
     (lambda (result)
       (let ((new (and result
                       (gemini-companion-context-name-shared-p file)
                       (gemini-companion-rename--new-errors
                        rename edit (car result) text))))
         (funcall then
                  (and new
                       (cons edit (list :path file :count (length new)
                                        :errors (seq-take new 10)
                                        :others nil))))))
     file text)))

(defun gemini-companion-rename--new-errors (rename edit errors text)
  "Return the ERRORS in TEXT that EDIT did not have before.
An error that names what RENAME renames is compared without that name."
  (let* ((old (gemini-companion-rename-old rename))
         (new (gemini-companion-rename-new rename))
         (case-fold-search nil)
         (either (regexp-opt (list old new) 'symbols))
         (masked (lambda (text)
                   (replace-regexp-in-string either new text t t)))
         (pairs (mapcar (pcase-lambda ((and error `(,line ,message . ,rest)))
                          (cons `(,line ,(funcall masked message) ,@rest) error))
                        errors)))
    (mapcar (lambda (located)
              (alist-get (gemini-companion-code-located-error located) pairs
                         nil nil #'eq))
            (gemini-companion-code-new-errors
             (mapcar #'car pairs)
             (funcall masked text)
             (list (mapcar (pcase-lambda (`(,line ,message . ,rest))
                             `(,line ,(funcall masked message) ,@rest))
                           (cadr (assq edit (gemini-companion-rename-errors rename)))))
             (funcall masked (gemini-companion-edit-texts-before edit))))))

;;;; A rename as a request

(defun gemini-companion-rename--places (rename)
  "Return how many places RENAME renames."
  (let ((new (gemini-companion-rename-new rename)))
    (cl-loop for edit in (gemini-companion-rename-edits rename)
             sum (- (gemini-companion-rename--count
                     new (gemini-companion-edit-proposed edit))
                    (gemini-companion-rename--count
                     new (gemini-companion-edit-texts-before edit))))))

(defun gemini-companion-rename--phrase (rename &optional columns)
  "Return what RENAME does, such as: rename one → uno, 7 places in 3 files.
If COLUMNS is non-nil, that is shorter where it would be wider: words are
left out first, and then names are shortened in their middle."
  (let* ((places (gemini-companion-rename--places rename))
         (number (length (gemini-companion-rename-edits rename)))
         (files (format (ngettext "%d file" "%d files" number) number))
         (counts (format (ngettext ", %d place in %s" ", %d places in %s" places)
                         places files))
         (arrow (concat " " (gemini-companion-text-sign ?\u2192 "->") " "))
         (old (gemini-companion-rename-old rename))
         (new (gemini-companion-rename-new rename))
         (all (list (concat "rename " old arrow new counts)
                    (concat old arrow new counts)
                    (format "%s%s%s, %d in %s" old arrow new places files))))
    (cond ((null columns) (car all))
          ((seq-find (lambda (text) (<= (string-width text) columns)) all))
          (t (gemini-companion-rename--shortened
              old new arrow (format ", %d in %s" places files) columns)))))

(defun gemini-companion-rename--shortened (old new arrow end columns)
  "Return the names OLD and NEW with ARROW between them, and END, in COLUMNS.
The names are shortened; a short one leaves its columns to the other."
  (let* ((room (max 16 (- columns (string-width arrow) (string-width end))))
         (half (/ room 2))
         (wide-old (string-width old))
         (wide-new (string-width new))
         (for-old (cond ((<= wide-old half) wide-old)
                        ((<= wide-new half) (- room wide-new))
                        (t half))))
    (concat (gemini-companion-names-shown old for-old)
            arrow
            (gemini-companion-names-shown new (- room for-old))
            end)))

(cl-defmethod gemini-companion-request-label ((rename gemini-companion-rename))
  "Return that the CLI proposes RENAME."
  (concat "proposes to " (gemini-companion-rename--phrase rename)))

(cl-defmethod gemini-companion-request-edits ((rename gemini-companion-rename))
  "Return the edits of RENAME."
  (gemini-companion-rename-edits rename))

(cl-defmethod gemini-companion-request-change
  ((rename gemini-companion-rename) &optional columns)
  "Return what RENAME does, in COLUMNS if that is non-nil."
  (gemini-companion-rename--phrase rename columns))

(cl-defmethod gemini-companion-request-insert ((rename gemini-companion-rename))
  "Insert what the language server has not said of RENAME."
  (dolist (line (gemini-companion-rename--unsaid rename))
    (insert line "\n")))

(defun gemini-companion-rename--unsaid (rename)
  "Return what the language server has not said of RENAME, a list of lines."
  (let* ((session (gemini-companion-rename-session rename))
         (names (lambda (files)
                  (concat
                   (mapconcat (lambda (file)
                                (gemini-companion-label-file file session 'plain))
                              (seq-take files 5) ", ")
                   (and (length> files 5)
                        (format " and %d more" (- (length files) 5))))))
         (old (gemini-companion-rename-old rename))
         (elsewhere (gemini-companion-rename-elsewhere rename))
         (unshared (gemini-companion-rename-unshared rename))
         (taken (gemini-companion-rename-taken rename)))
    (delq nil
          (list (when taken
                  (format "%s is already in %s" (gemini-companion-rename-new rename)
                          (funcall names taken)))
                (cond ((eq 'unknown elsewhere)
                       (format "Other files with %s are unknown: Git was missing, \
failed or took too long" old))
                      (elsewhere
                       (format "%s stays in %s" old (funcall names elsewhere)))
                      ((null unshared) (format "No other file has %s" old)))
                (when unshared
                  (format "%s stays in %s, not shared with CLIs"
                          old (funcall names unshared)))))))

(cl-defmethod gemini-companion-request-show ((rename gemini-companion-rename))
  "Show RENAME in the overview."
  (require 'gemini-companion-overview)
  (gemini-companion-overview-show rename))

(cl-defmethod gemini-companion-request-waits-to-appear-p
  ((rename gemini-companion-rename))
  "Return non-nil until RENAME has appeared."
  (not (gemini-companion-rename-appeared rename)))

(cl-defmethod gemini-companion-request-appear ((rename gemini-companion-rename))
  "Display RENAME in the overview."
  (setf (gemini-companion-rename-appeared rename) t)
  (require 'gemini-companion-overview)
  (gemini-companion-overview-appear rename))

(cl-defmethod gemini-companion-request-buffer ((_ gemini-companion-rename))
  "Return the buffer of the overview, or nil."
  (and (fboundp 'gemini-companion-overview-buffer)
       (gemini-companion-overview-buffer)))

;;;; Life

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'rename)))
  "Contribute the open renames to the requests."
  '((gemini-companion-request-list-functions gemini-companion-rename--all-open)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'rename)))
  "End all renames."
  (dolist (rename gemini-companion-rename--current)
    (gemini-companion-rename--end rename 'ended)))

(provide 'gemini-companion-rename)
;;; gemini-companion-rename.el ends here
