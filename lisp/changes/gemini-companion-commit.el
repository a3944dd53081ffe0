;;; gemini-companion-commit.el --- A commit of the user is a review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Who commits a change has reviewed it.  When this Emacs has made a commit, by VC or by
;; Magit, the changes left of which the commit has all lines are kept; what is not in
;; the commit is still left.  So are they when the server, which takes snapshots of the
;; work tree, reports a commit that was made while no tool of a CLI was running.  Any
;; other commit may be by a CLI, and keeps nothing; nor does an amended commit, a merge
;; or a rebase.
;;
;; Git is only asked, by processes that nobody waits for.  The file is loaded by the
;; first commit.
;;
;; `gemini-companion-commit-message' drafts the message of a commit from the prompts of the
;; turns that have written what will be in it, as far as the records know that.  It waits
;; for git, as the user does, who can quit.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-changes)
(require 'gemini-companion-decision)
(require 'gemini-companion-edit)
(require 'gemini-companion-git)
(require 'gemini-companion-idle)
(require 'gemini-companion-label)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-privacy)
(require 'gemini-companion-record)
(require 'gemini-companion-session)
(require 'gemini-companion-step)
(require 'gemini-companion-text)
(require 'gemini-companion-turn)
(require 'seq)
(require 'subr-x)

(declare-function log-edit-set-header "log-edit")
(defvar log-edit-vc-backend)
(defvar vc-log-fileset)

;;;; Customization

(defcustom gemini-companion-keep-committed t
  "Non-nil means that a commit of yours keeps the changes whose lines it has.
This is for commits by VC and Magit in this Emacs, and for others that the
server has seen while no CLI was in a turn."
  :type 'boolean
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion-reviews)

;;;; State

(defvar gemini-companion-commit--last nil
  "The name of the last commit of which changes were kept, or nil.")

;;;; Git

(defun gemini-companion-commit--git (directory input function &rest arguments)
  "Call FUNCTION with the output of git with ARGUMENTS, bytes, if it succeeds.
Git runs in DIRECTORY and gets INPUT, a string.  Do not wait for it."
  (let* ((default-directory directory)
         (process-environment (gemini-companion-git-environment))
         (buffer (generate-new-buffer " *gemini-companion git*"))
         (errors (make-pipe-process :name "gemini-companion-git-errors" :buffer nil
                                    :noquery t :filter #'ignore :sentinel #'ignore))
         (process
          (make-process
           :name "gemini-companion-git" :buffer buffer :noquery t
           :connection-type 'pipe :coding 'no-conversion :stderr errors
           :command (append gemini-companion-git-command arguments)
           :sentinel
           (lambda (process _event)
             (unless (process-live-p process)
               (let ((output (and (eql 0 (process-exit-status process))
                                  (buffer-live-p buffer)
                                  (with-current-buffer buffer
                                    (buffer-string)))))
                 (delete-process errors)
                 (kill-buffer buffer)
                 (when output
                   (gemini-companion-log-guarded "Reading a commit"
                     (funcall function output)))))))))
    (with-current-buffer buffer
      (set-buffer-multibyte nil))
    ;; Git may have ended already, if it reads no input.
    (ignore-errors
      (process-send-string process input)
      (process-send-eof process))))

;;;; Commits

(defun gemini-companion-commit-made ()
  "Keep the changes that are in the commit which this Emacs has just made.
It is the last one of the repository of the current directory."
  (gemini-companion-log-guarded "Reading a commit"
    (when-let* ((gemini-companion-keep-committed)
                ((gemini-companion-changes-files))
                ((not (file-remote-p default-directory)))
                (directory (locate-dominating-file
                            (file-truename default-directory) ".git"))
                ((executable-find "git")))
      (gemini-companion-commit--git
       (expand-file-name directory) ""
       (apply-partially #'gemini-companion-commit--read (expand-file-name directory))
       "log" "-g" "-1" "-z" "--format=%H %gs" "--raw" "--no-abbrev" "--root"
       "--no-ext-diff" "--no-renames" "HEAD"))))

(defun gemini-companion-commit--read (directory output)
  "Read the files of a commit in DIRECTORY, the root of a work tree.
OUTPUT has the commit, with its subject in the reflog, and its files.  What is
no plain commit, such as an amended one, is ignored."
  (pcase-let ((`(,header . ,files) (split-string output "\0")))
    (when (string-match "\\`\\([0-9a-f]+\\) commit\\(?: (initial)\\)?:" header)
      (gemini-companion-commit--read-files directory (match-string 1 header) files))))

(defun gemini-companion-commit--read-files (directory commit files)
  "Read the FILES of COMMIT that have changes left.
DIRECTORY is the root of the work tree.  FILES are the pieces of the output of
git with the options -z and --raw: modes and blobs, a name, and so on."
  (let ((records (cl-loop for (facts name) on files by #'cddr
                          for blob = (and name (nth 3 (split-string facts " ")))
                          for record = (and blob
                                            (gemini-companion-changes-of-file
                                             (gemini-companion-text-true-name
                                              (gemini-companion-names-below
                                               directory name))))
                          when (and record (gemini-companion-changes-file-known record))
                          collect (cons record blob))))
    ;; Emacs and the server may report the same commit.
    (unless (or (null records) (equal commit gemini-companion-commit--last))
      (setq gemini-companion-commit--last commit)
      (gemini-companion-commit--git
       directory
       ;; A name may have a newline.
       (mapconcat (lambda (record) (concat (cdr record) "\n")) records "")
       (apply-partially #'gemini-companion-commit--keep (mapcar #'car records))
       "cat-file" "--batch"))))

(defun gemini-companion-commit-seen (directory base commit)
  "Keep the changes that the commits after BASE until COMMIT have.
DIRECTORY is the root of their work tree, in which no tool of a CLI was running
meanwhile."
  (when (and gemini-companion-keep-committed
             (gemini-companion-changes-files)
             (executable-find "git"))
    (gemini-companion-commit--git
     (file-name-as-directory directory) ""
     (lambda (output)
       (gemini-companion-commit--read-files directory commit
                                            (split-string output "\0" t)))
     "diff" "-z" "--raw" "--no-abbrev" "--no-ext-diff" "--no-renames" base commit)))

(defun gemini-companion-commit--texts (output)
  "Return the contents in OUTPUT of `git cat-file --batch', a list of bytes.
A content that is missing is nil."
  (let ((at 0)
        (texts nil)
        end)
    (while (setq end (string-search "\n" output at))
      (let ((header (substring output at end)))
        (setq at (1+ end))
        (if (not (string-match "\\`[0-9a-f]+ blob \\([0-9]+\\)\\'" header))
            (push nil texts)
          (setq end (+ at (string-to-number (match-string 1 header))))
          (push (substring output at end) texts)
          (setq at (1+ end)))))
    (nreverse texts)))

(defun gemini-companion-commit--keep (records output)
  "Keep the changes of RECORDS that are in a commit, as one decision.
OUTPUT of git has the contents of their files there."
  (let ((before (or (gemini-companion-changes-left) 0))
        (names nil))
    (gemini-companion-decision-with
        (concat "keep of what you committed in " (string-join names ", "))
      (cl-loop
       for record in records
       for bytes in (gemini-companion-commit--texts output)
       for hunks = (and (or bytes (gemini-companion-changes-deleted-p record))
                        (gemini-companion-changes-update record)
                        (gemini-companion-changes-hunks-in
                         record
                         (if bytes
                             (gemini-companion-changes-lines-of-content
                              (gemini-companion-changes-content-with record bytes))
                           [])))
       when hunks
       do (gemini-companion-step-decide
           (gemini-companion-step-make :kind 'kept :on t :record record :hunks hunks
                                       :unlisted t))
       (push (gemini-companion-edit-name (gemini-companion-changes-file-edit record)
                                         'plain)
             names)))
    (when names
      (let ((count (- before (or (gemini-companion-changes-left) 0))))
        (gemini-companion-idle-announce
         (format (ngettext "Kept %d change that you committed"
                           "Kept %d changes that you committed" count)
                 count))))))

;;;; What will be in a commit

(defun gemini-companion-commit--ask (root variables input &rest arguments)
  "Return the output of git with ARGUMENTS in ROOT, bytes, or nil if it fails.
INPUT is a string of bytes.  For VARIABLES, see
`gemini-companion-git-environment'.  Wait for git; the user can quit."
  (with-temp-buffer
    (set-buffer-multibyte nil)
    (let ((default-directory root)
          (process-environment (apply #'gemini-companion-git-environment variables))
          (coding-system-for-read 'no-conversion)
          (coding-system-for-write 'no-conversion))
      (and (eql 0 (apply #'call-process-region input nil
                         (car gemini-companion-git-command) nil '(t nil) nil
                         (append (cdr gemini-companion-git-command) arguments)))
           (buffer-string)))))

(defun gemini-companion-commit--without-filters (root)
  "Return options to keep git from filters on the files in ROOT.
A project may set these to programs; git runs them on files that it compares.
The variable GEMINI_COMPANION_NONE must be empty."
  (cl-loop for name in (split-string
                        (or (gemini-companion-commit--ask
                             root nil "" "config" "-z" "--name-only"
                             "--get-regexp" "^filter\\.")
                            "")
                        "\0" t)
           for driver = (substring name 0 (string-match "\\.[^.]*\\'" name))
           append (mapcar (lambda (slot)
                            (concat "--config-env=" driver slot
                                    "=GEMINI_COMPANION_NONE"))
                          '(".process" ".required"))))

(defun gemini-companion-commit--here ()
  "Return what the message in this buffer is for, (ROOT VARIABLES FILES).
ROOT is that of a work tree, and VARIABLES name its repository and the index of
the commit.  FILES are committed as they are in the work tree; if they are nil,
the index is.  Signal a `user-error' elsewhere."
  (cond
   ((file-remote-p default-directory)
    (user-error "Commits on another host have no draft"))
   ((derived-mode-p 'log-edit-mode)
    (let* ((files (and (eq 'Git (bound-and-true-p log-edit-vc-backend))
                       (mapcar #'expand-file-name (bound-and-true-p vc-log-fileset))))
           (root (and files (locate-dominating-file (car files) ".git"))))
      (unless root
        (user-error "This message is not for a commit by Git"))
      (list (expand-file-name root) nil files)))
   ((string-match-p "/\\(?:COMMIT_EDIT\\|MERGE_\\)MSG\\'" (or buffer-file-name ""))
    (let* ((git (file-name-directory (file-truename buffer-file-name)))
           (link (concat git "gitdir"))
           ;; A commit of all changes, or of some files, has an index of its own.
           (lock (concat git "index.lock"))
           (index (cond ((not (file-exists-p lock)) (concat git "index"))
                        ;; One that is older is of a commit that was killed.
                        ((seq-find (lambda (file)
                                     (not (file-newer-than-file-p lock file)))
                                   (directory-files
                                    git t "\\`next-index-.*\\.lock\\'")))
                        (t lock)))
           (variables (list (concat "GIT_DIR=" git) (concat "GIT_INDEX_FILE=" index))))
      (list (file-name-directory
             (if (file-exists-p link)
                 (gemini-companion-text-trim (gemini-companion-text-read link))
               ;; A submodule has a name there.
               (if-let* ((tree (gemini-companion-commit--ask git variables "" "config"
                                                             "--get" "core.worktree")))
                   (file-name-as-directory
                    (gemini-companion-names-in git (gemini-companion-text-trim tree)))
                 (directory-file-name git))))
            variables nil)))
   (t (user-error "No commit message here; start a commit by C-x v v, or by \
`git commit' with emacsclient"))))

(defun gemini-companion-commit--changed (root files output)
  "Return the files that a commit changes, lists (RECORD OLD NEW).
OUTPUT is that of git with the options -M, -z and --raw in ROOT.  OLD and NEW
are blobs, or nil without a file; if FILES are not nil, only they count, and NEW
is `now', the file in the work tree."
  (let ((pieces (split-string output "\0" t))
        (changed nil))
    (while pieces
      (pcase-let* ((`(,_ ,_ ,old ,new ,status) (split-string (pop pieces) " "))
                   (_ (when (string-prefix-p "R" status)
                        (pop pieces)))
                   (file (gemini-companion-names-below root (pop pieces))))
        (when (or (null files)
                  (seq-some (lambda (known)
                              (string-prefix-p (file-name-as-directory known)
                                               (file-name-as-directory file)))
                            files))
          (push (list (gemini-companion-changes-of-file
                       (gemini-companion-text-true-name file))
                      (and (not (equal status "A")) old)
                      (and (not (equal status "D")) (if files 'now new)))
                changed))))
    (nreverse changed)))

(defun gemini-companion-commit--edits (root variables files)
  "Return the edits that have written or removed lines which the commit has.
ROOT, VARIABLES and FILES are as `gemini-companion-commit--here' returns them."
  (let* ((ask (apply-partially #'gemini-companion-commit--ask root
                               (cons "GEMINI_COMPANION_NONE=" variables)))
         ;; Without files, git reads only its index.
         (options (and files (gemini-companion-commit--without-filters root)))
         (changed
          (gemini-companion-commit--changed
           root files
           (or (seq-some (lambda (base)
                           (apply ask ""
                                  `(,@options
                                    "diff-index" "-z" "--raw" "--no-abbrev" "-M"
                                    ,base
                                    ,@(and (null files) '("--cached")))))
                         ;; The others are names of the empty tree, as before the
                         ;; first commit.
                         '("HEAD" "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
                           "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939\
dd74decc5321"))
               (user-error "Git cannot compare this commit in %s" root))))
         (recorded (seq-filter #'car changed))
         (blobs (seq-filter #'stringp (seq-mapcat #'cdr recorded)))
         (texts (and blobs
                     (cl-mapcar #'cons blobs
                                (gemini-companion-commit--texts
                                 (or (funcall ask (string-join `(,@blobs "") "\n")
                                              "cat-file" "--batch")
                                     ""))))))
    (seq-uniq (cl-loop for (record old new) in recorded
                       for before = (gemini-companion-commit--look record old texts)
                       for after = (gemini-companion-commit--look record new texts)
                       ;; What cannot be read is unknown.
                       when (and before after)
                       append (gemini-companion-record-edits-since before after))
              #'eq)))

(defun gemini-companion-commit--look (record blob texts)
  "Return the look at RECORD for BLOB, see `gemini-companion-commit--changed'.
TEXTS is an alist from blobs to bytes.  Return nil if there is no text."
  (let ((bytes (cdr (assoc blob texts))))
    (cond ((eq blob 'now)
           (when-let* ((seen (gemini-companion-changes-seen record nil)))
             (gemini-companion-changes-seen-look seen)))
          ((or bytes (null blob))
           (gemini-companion-record-look
            (gemini-companion-changes-file-lines record)
            (if bytes
                (gemini-companion-changes-lines-of-content
                 (gemini-companion-changes-content-with record bytes))
              []))))))

;;;; A draft of the message

(defconst gemini-companion-commit--columns 70
  "Maximum width of a prompt in a message, without the dash of a list.")

(defun gemini-companion-commit--line (text)
  "Return the beginning of TEXT, as one line without control characters.
The line does not begin with #, as Git would remove it."
  (truncate-string-to-width
   (gemini-companion-text-trim
    (string-join
     (split-string
      (mapconcat (lambda (char)
                   (pcase (get-char-code-property char 'general-category)
                     ((or 'Cc 'Zl 'Zp) " ")
                     ((or 'Cf 'Cn 'Co 'Cs) "")
                     (_ (string char))))
                 (substring text 0 (min 1000 (length text))) ""))
     " ")
    "# " 'left)
   gemini-companion-commit--columns nil nil
   (gemini-companion-text-sign ?\u2026 "...")))

(defun gemini-companion-commit--prompt (edit root)
  "Return the prompt of EDIT as a line, or nil if no CLI has reported it.
If one of its words may be the name of an excluded file, in the directory of its
CLI or in ROOT, return `excluded'."
  (when-let* ((turn (gemini-companion-edit-turn edit))
              ((gemini-companion-turn-reported turn))
              (prompt (gemini-companion-turn-prompt turn)))
    (if (cl-loop
         for directory in (delq nil (list (gemini-companion-session-directory
                                           (gemini-companion-edit-session edit))
                                          root))
         thereis (cl-loop
                  for word in (split-string prompt
                                            "[][:blank:]\n\"'`(){}<>,;:=@|\\[]+" t)
                  for name = (gemini-companion-text-trim word ".!?" 'right)
                  thereis (gemini-companion-privacy-name-hidden-p
                           (if (string-prefix-p "~/" name)
                               (expand-file-name name)
                             (gemini-companion-names-in directory name)))))
        'excluded
      (gemini-companion-commit--line prompt))))

(defun gemini-companion-commit--assisted-by (edit)
  "Return the trailer that names the CLI of EDIT."
  (let ((session (gemini-companion-edit-session edit)))
    (concat "Assisted-by: "
            (gemini-companion-commit--line
             (concat (gemini-companion-session-title session) " "
                     (gemini-companion-session-version session))))))

(defun gemini-companion-commit--insert (asked trailers subject)
  "Insert ASKED, lines, and TRAILERS, lines, into the message at point.
If SUBJECT is non-nil, and the message has no first line, the only line of
ASKED becomes that; otherwise ASKED becomes a list.  Leave out those of
TRAILERS that the message has, and put the others before such lines.
Return non-nil if something was inserted."
  (let* ((log (derived-mode-p 'log-edit-mode))
         (find (lambda (regexp)
                 (save-excursion
                   (goto-char (point-min))
                   (and (re-search-forward (concat "^" regexp) nil t)
                        (line-beginning-position)))))
         (empty (if log
                    (not (funcall find (concat (and (funcall find "Summary:")
                                                    "Summary:\\(?:\n?[[:blank:]]\\)*")
                                               ".*[^[:blank:]\n]")))
                  (and (bobp) (eolp))))
         (subject (and subject empty))
         (trailers (seq-remove (lambda (line)
                                 (funcall find (concat (regexp-quote line) "$")))
                               trailers))
         (others (and trailers
                      (funcall find "\\(?:Signed-off\\|Co-authored\\|Assisted\\)-by: ")))
         (text (string-join
                (delq nil
                      (list (cond ((null asked)
                                   ;; The first line is for the subject.
                                   (and empty (not log) ""))
                                  ((not subject)
                                   (mapconcat (apply-partially #'concat "- ") asked "\n"))
                                  ((not log) (car asked)))
                            (and trailers (not others) (string-join trailers "\n"))))
                "\n\n")))
    (when others
      (save-excursion
        (goto-char others)
        (insert (string-join trailers "\n") "\n")))
    (when log
      ;; Log Edit could take a first line for a header.
      (when empty
        (log-edit-set-header "Summary" (or (and subject (car asked)) "")))
      (goto-char (max (point) (save-excursion
                                (goto-char (point-min))
                                (rfc822-goto-eoh)
                                (unless (bobp)
                                  (forward-line))
                                (point)))))
    (unless (or (string-empty-p text) (and (bolp) (eolp)))
      (end-of-line)
      (insert (if (= (point-min) (line-beginning-position)) "\n\n" "\n")))
    (insert text)
    (or asked trailers)))

;;;; Commands

(defun gemini-companion-commit-message ()
  "Insert a draft of the commit message at point: what you have asked CLIs for.
The first line of the prompt is the subject if the message is empty and one turn
has written what is committed; otherwise the prompts are a list.  The trailer
`Assisted-by' names the CLIs.  A prompt that may name an excluded file is left
out, and counted in the echo area.  No model is asked."
  (interactive "*")
  (when (save-excursion
          (end-of-line)
          (re-search-backward "^.+ -\\{24\\} >8 -\\{24\\}$" nil t))
    (user-error "Git removes the line at point; go up to the message"))
  (pcase-let* ((`(,root ,variables ,files) (gemini-companion-commit--here))
               (edits (or (gemini-companion-commit--edits root variables files)
                          (user-error (if files
                                          "No line of a CLI is known in these files"
                                        "No line of a CLI is known in this commit; \
stage its changes first"))))
               ;; One edit of each turn.
               (turns (seq-uniq (seq-sort-by #'gemini-companion-edit-since #'< edits)
                                (lambda (a b)
                                  (eq (gemini-companion-edit-turn a)
                                      (gemini-companion-edit-turn b)))))
               (prompts (mapcar (lambda (edit)
                                  (gemini-companion-commit--prompt edit root))
                                turns))
               (inserted (gemini-companion-commit--insert
                          (seq-uniq (delete "" (seq-filter #'stringp prompts)))
                          (seq-uniq (mapcar #'gemini-companion-commit--assisted-by
                                            edits))
                          (null (cdr turns))))
               (count (lambda (prompt text)
                        (let ((count (seq-count (apply-partially #'eq prompt) prompts)))
                          (if (< 0 count) (format text count) "")))))
    (message "%s%s%s"
             (if inserted
                 "Draft inserted; check it before you commit"
               "The message has all of the draft already")
             (funcall count 'excluded "; prompts that may name an excluded file: %d")
             (funcall count nil "; prompts that are not known: %d"))))

(provide 'gemini-companion-commit)
;;; gemini-companion-commit.el ends here
