;;; gemini-companion-settings.el --- Settings of Gemini CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;; This program is free software; you can redistribute it and/or modify
;; it under the terms of the GNU General Public License as published by
;; the Free Software Foundation, either version 3 of the License, or
;; (at your option) any later version.

;; This program is distributed in the hope that it will be useful,
;; but WITHOUT ANY WARRANTY; without even the implied warranty of
;; MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE.  See the
;; GNU General Public License for more details.

;; You should have received a copy of the GNU General Public License
;; along with this program.  If not, see <https://www.gnu.org/licenses/>.

;;; Commentary:

;; The settings.json of Gemini CLI: is `ide.enabled' set, and set it.  The
;; file belongs to a person who may have written comments into it, so an edit
;; changes no character besides those that it is about.

;;; Code:

(require 'json)
(require 'seq)
(require 'subr-x)

(define-error 'gemini-companion-settings-malformed
  "The settings of Gemini CLI are malformed")

;;;; Files

(defun gemini-companion-settings-file ()
  "Return the name of the person's settings file of Gemini CLI."
  (expand-file-name ".gemini/settings.json"
                    (or (getenv "GEMINI_CLI_HOME") "~")))

(defun gemini-companion-settings-system-file ()
  "Return the name of the settings file that overrides all others."
  (or (getenv "GEMINI_CLI_SYSTEM_SETTINGS_PATH")
      (pcase system-type
        ('darwin "/Library/Application Support/GeminiCli/settings.json")
        ('windows-nt "C:/ProgramData/gemini-cli/settings.json")
        (_ "/etc/gemini-cli/settings.json"))))

;;;; Text

(defconst gemini-companion-settings--syntax
  (let ((table (make-syntax-table)))
    (modify-syntax-entry ?\" "\"" table)
    (modify-syntax-entry ?\\ "\\" table)
    (modify-syntax-entry ?\{ "(}" table)
    (modify-syntax-entry ?\} "){" table)
    (modify-syntax-entry ?\[ "(]" table)
    (modify-syntax-entry ?\] ")[" table)
    (dolist (character '(?- ?+ ?.))
      (modify-syntax-entry character "w" table))
    table)
  "Syntax of JSON, as far as it takes to skip a value.")

(defconst gemini-companion-settings--comment
  (rx (or (seq "\"" (* (or (not (any "\"\\\n")) (seq "\\" nonl))) "\"")
          (group "//" (* nonl))
          (group "/*" (*? anything) "*/")))
  "What is a comment or, without a group, a string.")

(defun gemini-companion-settings--blanked (text)
  "Return TEXT with spaces in place of its comments."
  (with-temp-buffer
    (insert text)
    (goto-char (point-min))
    (while (re-search-forward gemini-companion-settings--comment nil t)
      (let ((start (or (match-beginning 1) (match-beginning 2))))
        (when start
          (let ((length (- (point) start)))
            (delete-region start (point))
            (insert (make-string length ?\s))))))
    (buffer-string)))

(defun gemini-companion-settings--malformed (reason)
  "Signal that a settings file is malformed because of REASON."
  (signal 'gemini-companion-settings-malformed (list reason)))

(defun gemini-companion-settings--parsed (blanked)
  "Return the JSON object BLANKED, a text without comments, as an alist.
Of members with the same name the last one comes first, as it is
the one that counts."
  (let ((value (condition-case problem
                   (if (json-available-p)
                       (json-parse-string blanked :object-type 'alist
                                          :false-object :false)
                     (gemini-companion-settings--read blanked))
                 (error
                  (gemini-companion-settings--malformed
                   (error-message-string problem))))))
    (unless (and (listp value) (string-prefix-p "{" (string-trim blanked)))
      (gemini-companion-settings--malformed "it is not a JSON object"))
    (reverse value)))

(defun gemini-companion-settings--read (blanked)
  "Return the JSON value BLANKED, in an Emacs that was built without JSON."
  (with-temp-buffer
    (insert blanked)
    (goto-char (point-min))
    (prog1 (let ((json-object-type 'alist)
                 (json-false :false))
             (json-read))
      (skip-chars-forward " \t\r\n")
      (unless (eobp)
        (error "Something follows the object")))))

(defun gemini-companion-settings-ide-enabled (text)
  "Return what TEXT, the content of a settings file, has as `ide.enabled'.
That is t, `:false', or nil if it says nothing of it."
  (if (string-blank-p text)
      nil
    (let ((ide (alist-get 'ide (gemini-companion-settings--parsed
                                (gemini-companion-settings--blanked text)))))
      (and (consp ide) (alist-get 'enabled (reverse ide))))))

;;;; Edit

(defun gemini-companion-settings--members (start)
  "Return the members of the object that begins at START in this buffer.
Each is a list of its key and the beginnings and ends of key and
value.  The buffer holds JSON without comments."
  (goto-char (1+ start))
  (let (members)
    (while (progn (skip-chars-forward " \t\r\n,")
                  (not (eq (char-after) ?\})))
      (let* ((key (point))
             (key-end (scan-sexps key 1))
             (value (progn (goto-char key-end)
                           (skip-chars-forward " \t\r\n:")
                           (point)))
             (value-end (scan-sexps value 1)))
        (push (list (json-read-from-string (buffer-substring key key-end))
                    key value value-end)
              members)
        (goto-char value-end)))
    (nreverse members)))

(defun gemini-companion-settings--place (blanked)
  "Return where `ide.enabled' is to be written in BLANKED.
A list of (replace START END), with the old value in between, or
of (add OBJECT NESTED): as a new member of the object that begins
at OBJECT, or if NESTED is non-nil, in a new object there."
  (with-temp-buffer
    (set-syntax-table gemini-companion-settings--syntax)
    (insert blanked)
    (goto-char (point-min))
    (skip-chars-forward " \t\r\n")
    (let* ((top (point))
           (last (lambda (name members)
                   (assoc name (reverse members))))
           (ide (funcall last "ide" (gemini-companion-settings--members top))))
      (cond
       ((null ide) (list 'add top t))
       ((not (eq (char-after (nth 2 ide)) ?\{))
        (gemini-companion-settings--malformed "\"ide\" is not an object"))
       (t
        (pcase (funcall last "enabled"
                        (gemini-companion-settings--members (nth 2 ide)))
          (`(,_ ,_ ,start ,end) (list 'replace start end))
          (_ (list 'add (nth 2 ide) nil))))))))

(defun gemini-companion-settings-enable (text)
  "Return TEXT, the content of a settings file, with `ide.enabled' true.
Everything else in it stays as it is."
  (if (string-blank-p text)
      "{\n  \"ide\": {\n    \"enabled\": true\n  }\n}\n"
    (let ((blanked (gemini-companion-settings--blanked text)))
      (gemini-companion-settings--parsed blanked)
      (pcase-exhaustive (gemini-companion-settings--place blanked)
        (`(replace ,start ,end)
         (concat (substring text 0 (1- start)) "true"
                 (substring text (1- end))))
        (`(add ,object ,nested)
         (gemini-companion-settings--add text blanked object nested))))))

(defun gemini-companion-settings--add (text blanked object nested)
  "Return TEXT with a last member in the object that begins at OBJECT.
It has the style of the others.  BLANKED is TEXT without comments;
NESTED as `gemini-companion-settings--place' returns it."
  (with-temp-buffer
    (set-syntax-table gemini-companion-settings--syntax)
    (insert blanked)
    (let* ((members (gemini-companion-settings--members object))
           (end (1- (scan-sexps object 1)))
           (lines (save-excursion
                    (goto-char object)
                    (search-forward "\n" end t)))
           (outer (gemini-companion-settings--indentation object))
           (indentation (if members
                            (gemini-companion-settings--indentation
                             (nth 1 (car members)))
                          (concat outer "  ")))
           (member (gemini-companion-settings--member
                    nested lines indentation
                    (string-remove-prefix outer indentation))))
      ;; From here on the real text, comments and all.
      (erase-buffer)
      (insert text)
      (goto-char end)
      (skip-chars-backward " \t\r\n")
      (insert (if lines (concat "\n" indentation) " ") member
              (if (or members lines) "" " "))
      (when members
        (goto-char (nth 3 (car (last members))))
        (insert ","))
      (buffer-string))))

(defun gemini-companion-settings--indentation (position)
  "Return the white space that the line of POSITION begins with."
  (save-excursion
    (goto-char position)
    (beginning-of-line)
    (buffer-substring (point) (progn (skip-chars-forward " \t") (point)))))

(defun gemini-companion-settings--member (nested lines indentation step)
  "Return the text of the new member.
In a new object if NESTED, on LINES of their own if that is
non-nil, which begin with INDENTATION and, deeper, STEP more."
  (let ((enabled "\"enabled\": true"))
    (cond ((not nested) enabled)
          (lines (concat "\"ide\": {\n" indentation step enabled "\n"
                         indentation "}"))
          (t (concat "\"ide\": {" enabled "}")))))

;;;; Effects

(defun gemini-companion-settings-text (file)
  "Return the content of FILE, or nil if there is none."
  (car (gemini-companion-settings--contents file)))

(defun gemini-companion-settings--contents (file)
  "Return a list of the content of FILE and its coding system, or nil."
  (when (file-exists-p file)
    (with-temp-buffer
      (let ((coding-system-for-read 'utf-8))
        (insert-file-contents file))
      (list (buffer-string) last-coding-system-used))))

(defun gemini-companion-settings-set-enabled (file)
  "Set `ide.enabled' in FILE, a settings file of Gemini CLI.
Signal a `user-error' and leave it alone if that is not possible."
  (let ((buffer (find-buffer-visiting file)))
    (when (and buffer (buffer-modified-p buffer))
      (user-error "%s has unsaved changes; save them first"
                  (buffer-name buffer)))
    (condition-case problem
        (gemini-companion-settings--rewrite file)
      (gemini-companion-settings-malformed
       (user-error "%s is malformed: %s; mend it first"
                   (abbreviate-file-name file) (cadr problem)))
      (file-error
       (user-error "Cannot change %s: %s"
                   (abbreviate-file-name file)
                   (error-message-string problem))))
    (when buffer
      (with-current-buffer buffer
        (revert-buffer t t t)))))

(defun gemini-companion-settings--rewrite (file)
  "Write FILE with `ide.enabled' set, all at once or not at all."
  ;; People keep a link here to where all their settings are.
  (let* ((file (file-truename file))
         (contents (gemini-companion-settings--contents file))
         (new (gemini-companion-settings-enable (or (car contents) ""))))
    (unless (or (null contents) (file-writable-p file))
      (signal 'file-error (list "It is read-only")))
    (make-directory (file-name-directory file) t)
    (let ((draft (make-temp-file (concat file ".")))
          (coding-system-for-write (or (cadr contents) 'utf-8-unix)))
      (condition-case problem
          (progn
            (write-region new nil draft nil 'silent)
            (set-file-modes draft (if contents
                                      (file-modes file)
                                    (logand #o666 (default-file-modes))))
            (rename-file draft file t))
        (error
         (delete-file draft)
         (signal (car problem) (cdr problem)))))))

(provide 'gemini-companion-settings)
;;; gemini-companion-settings.el ends here
