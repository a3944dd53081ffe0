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

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-decision)
(require 'gemini-companion-git)
(require 'gemini-companion-idle)
(require 'gemini-companion-label)
(require 'gemini-companion-log)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-step)
(require 'gemini-companion-text)
(require 'subr-x)

;;;; Customization

(defcustom gemini-companion-keep-committed t
  "Non-nil means keep the changes that you commit in Emacs.
This is for commits by VC and Magit, with all lines of a change."
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

(provide 'gemini-companion-commit)
;;; gemini-companion-commit.el ends here
