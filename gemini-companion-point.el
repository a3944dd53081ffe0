;;; gemini-companion-point.el --- Send what is at point  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors

;; Author: The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The command that inserts what is at point into the prompt of a CLI.  A table
;; has a function for each mode, which describes that by texts and references to
;; files.  A reference, such as @path, is read by the CLI; all else is quoted.

;;; Code:

(require 'gemini-companion-name)
(require 'gemini-companion-privacy)
(require 'gemini-companion-send)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'map)
(require 'seq)
(require 'subr-x)
;; Parts of a hit are read by macros.
(eval-when-compile (require 'compile))

(declare-function compilation--message->loc "compile")
(declare-function diff-bounds-of-hunk "diff-mode")
(declare-function diff-find-file-name "diff-mode")
(declare-function dired-get-marked-files "dired")
(declare-function flycheck-error-filename "ext:flycheck")
(declare-function flycheck-error-line "ext:flycheck")
(declare-function flycheck-error-message "ext:flycheck")
(declare-function flycheck-overlay-errors-in "ext:flycheck")
(declare-function flymake-diagnostic-beg "flymake")
(declare-function flymake-diagnostic-buffer "flymake")
(declare-function flymake-diagnostic-text "flymake")
(declare-function flymake-diagnostics "flymake")
(declare-function gemini-companion-compose "gemini-companion-compose")
(declare-function magit-current-section "ext:magit-section")
(declare-function magit-file-at-point "ext:magit-git")
(declare-function slot-value "eieio")
(declare-function tabulated-list-get-id "tabulated-list")
(declare-function vterm-previous-prompt "ext:vterm")
(declare-function xref-item-location "xref")
(declare-function xref-location-group "xref")
(declare-function xref-location-line "xref")
(defvar comint-last-input-start)
(defvar eshell-last-input-start)

(defvar gemini-companion-send-alist
  '((dired-mode . gemini-companion-point-dired)
    (compilation-mode . gemini-companion-point-compilation)
    (xref--xref-buffer-mode . gemini-companion-point-xref)
    (occur-mode . gemini-companion-point-occur)
    (flymake-diagnostics-buffer-mode . gemini-companion-point-flymake)
    (flymake-project-diagnostics-mode . gemini-companion-point-flymake)
    (flycheck-error-list-mode . gemini-companion-point-flycheck)
    (diff-mode . gemini-companion-point-diff)
    (magit-mode . gemini-companion-point-magit)
    (eshell-mode . gemini-companion-point-shell)
    (comint-mode . gemini-companion-point-shell)
    (vterm-mode . gemini-companion-point-shell)
    (image-mode . gemini-companion-point-file)
    (fundamental-mode . gemini-companion-point-file-or-text))
  "Alist of (MODE . FUNCTION): what `gemini-companion-send' sends.
The first element counts whose MODE is the major mode, or one that it is
derived from; `fundamental-mode' is for all modes.

FUNCTION returns a list of what is at point.  Each element is a string,
which is quoted, or a list (FILE WHERE TEXT) for a reference to FILE, an
absolute file name: WHERE is a string such as \"line 2\", or nil, and
TEXT is a string from FILE or about it, or nil.")

(defconst gemini-companion-point--most-lines 200
  "Maximum number of lines of the output of a command.")

;;;; Files

(defun gemini-companion-point-file ()
  "Return a reference to the file of this buffer."
  (let ((file (buffer-file-name (or (buffer-base-buffer) (current-buffer)))))
    (when (buffer-modified-p)
      (message "Unsaved changes; the CLI reads the file on disk"))
    (list (list file nil nil))))

(defun gemini-companion-point-file-or-text ()
  "Return a reference to the lines of the region, the defun or the line.
With a diagnostic on the line of point, it has its message.  Without a
file, return the region or the paragraph."
  (pcase (and (buffer-file-name (or (buffer-base-buffer) (current-buffer)))
              (gemini-companion-point-file))
    (`((,file . ,_))
     (pcase-let* ((messages (and (not (use-region-p))
                                 (gemini-companion-point--diagnostics)))
                  (`(,start . ,end)
                   (or (gemini-companion-point--region)
                       (and (not messages)
                            (derived-mode-p 'prog-mode)
                            (bounds-of-thing-at-point 'defun))
                       (cons (point) (point)))))
       (list (list file (gemini-companion-point--lines start end)
                   (and messages (string-join messages "\n"))))))
    (_ (gemini-companion-point-text))))

(defun gemini-companion-point--region ()
  "Return the bounds of the active region, or nil."
  (and (use-region-p)
       (cons (region-beginning) (region-end))))

(defun gemini-companion-point--lines (start end)
  "Return a text for the lines from START to END."
  (let ((first (line-number-at-pos start t))
        (last (line-number-at-pos (if (and (< start end)
                                           (eq (char-before end) ?\n))
                                      (1- end)
                                    end)
                                  t)))
    (if (= first last)
        (format "line %d" first)
      (format "lines %d-%d" first last))))

(defun gemini-companion-point--diagnostics ()
  "Return the messages of Flymake and Flycheck on the line of point."
  (let ((start (line-beginning-position))
        (end (line-end-position)))
    (seq-uniq
     (mapcar #'string-trim
             (append
              (and (bound-and-true-p flymake-mode)
                   (mapcar #'flymake-diagnostic-text
                           (flymake-diagnostics start end)))
              (and (bound-and-true-p flycheck-mode)
                   (mapcar #'flycheck-error-message
                           (flycheck-overlay-errors-in start end))))))))

(defun gemini-companion-point-dired ()
  "Return references to the marked files, or the one at point."
  (mapcar (lambda (file) (list file nil nil))
          (dired-get-marked-files)))

;;;; Lists of places

(defun gemini-companion-point--on-lines (function)
  "Return the values of FUNCTION on the lines of the region, or here."
  (if (not (use-region-p))
      (delq nil (list (funcall function)))
    (save-excursion
      (let ((end (copy-marker (region-end)))
            (found nil))
        (goto-char (region-beginning))
        (while (< (point) end)
          (push (funcall function) found)
          (forward-line))
        (delq nil (nreverse found))))))

(defun gemini-companion-point--this-line ()
  "Return the text of the line of point."
  (string-trim (buffer-substring-no-properties (line-beginning-position)
                                               (line-end-position))))

(defun gemini-companion-point-compilation ()
  "Return the messages or hits of a compilation or a search."
  (gemini-companion-point--on-lines
   (lambda ()
     (when-let* ((message (get-text-property (line-beginning-position)
                                             'compilation-message))
                 (place (compilation--message->loc message)))
       (pcase-let ((`(,name ,directory)
                    (car (compilation--loc->file-struct place))))
         (list (expand-file-name name directory)
               (format "line %s" (compilation--loc->line place))
               (gemini-companion-point--this-line)))))))

(defun gemini-companion-point-xref ()
  "Return the hits in a list of references."
  (gemini-companion-point--on-lines
   (lambda ()
     (when-let* ((item (get-text-property (line-beginning-position) 'xref-item))
                 (place (xref-item-location item)))
       (list (expand-file-name (xref-location-group place))
             (format "line %s" (xref-location-line place))
             (gemini-companion-point--this-line))))))

(defun gemini-companion-point-occur ()
  "Return the lines that were found in a buffer."
  (gemini-companion-point--on-lines
   (lambda ()
     (let* ((target (get-text-property (point) 'occur-target))
            ;; Emacs 28 has a marker, later versions a list of pairs of them.
            (marker (if (consp target) (caar target) target))
            (text (gemini-companion-point--this-line)))
       (when marker
         (with-current-buffer (marker-buffer marker)
           (if buffer-file-name
               (list buffer-file-name
                     (gemini-companion-point--lines marker marker) text)
             text)))))))

(defun gemini-companion-point-flymake ()
  "Return the diagnostics in a list of Flymake."
  (gemini-companion-point--on-lines
   (lambda ()
     (when-let* ((id (tabulated-list-get-id))
                 (diagnostic (plist-get id :diagnostic))
                 (text (flymake-diagnostic-text diagnostic))
                 (buffer (flymake-diagnostic-buffer diagnostic)))
       ;; In Emacs 29 and later, it may be the name of a file.
       (if (stringp buffer)
           (list buffer (format "line %s" (car (flymake-diagnostic-beg
                                                diagnostic)))
                 text)
         (with-current-buffer buffer
           (list (or buffer-file-name (buffer-name))
                 (gemini-companion-point--lines
                  (flymake-diagnostic-beg diagnostic)
                  (flymake-diagnostic-beg diagnostic))
                 text)))))))

(defun gemini-companion-point-flycheck ()
  "Return the diagnostics in a list of Flycheck."
  (gemini-companion-point--on-lines
   (lambda ()
     (when-let* ((problem (tabulated-list-get-id)))
       (list (flycheck-error-filename problem)
             (format "line %s" (flycheck-error-line problem))
             (flycheck-error-message problem))))))

;;;; Texts

(defun gemini-companion-point-diff ()
  "Return the hunk at point, with the name of its file."
  (pcase-let ((`(,start ,end) (diff-bounds-of-hunk)))
    (list (list (expand-file-name (diff-find-file-name nil t)) nil
                (gemini-companion-point--fenced
                 (buffer-substring-no-properties start end) "diff")))))

(defun gemini-companion-point-magit ()
  "Return the hunk at point, with the name of its file."
  (let ((section (magit-current-section))
        (file (magit-file-at-point)))
    (unless file
      (user-error "No hunk or file here"))
    (list (list (expand-file-name file (locate-dominating-file
                                        default-directory ".git"))
                nil
                (gemini-companion-point--fenced
                 (buffer-substring-no-properties (slot-value section 'start)
                                                 (slot-value section 'end))
                 "diff")))))

(defun gemini-companion-point-shell ()
  "Return the region, or the last command and its output."
  (if (use-region-p)
      (gemini-companion-point-text)
    (let* ((start (cond ((bound-and-true-p eshell-last-input-start))
                        ((bound-and-true-p comint-last-input-start))
                        (t (save-excursion
                             (ignore-errors (vterm-previous-prompt 1))
                             (line-beginning-position)))))
           (lines (split-string
                   (string-trim (buffer-substring-no-properties
                                 (save-excursion (goto-char start)
                                                 (line-beginning-position))
                                 (point-max)))
                   "\n")))
      (list (gemini-companion-point--fenced
             (string-join (last lines gemini-companion-point--most-lines) "\n")
             "")))))

(defun gemini-companion-point-text ()
  "Return the region or the paragraph at point, as a quotation."
  (pcase-let* ((`(,start . ,end)
                (or (gemini-companion-point--region)
                    (bounds-of-thing-at-point 'paragraph)
                    (user-error "Nothing here; select a region")))
               (text (string-trim (buffer-substring-no-properties start end)
                                  "\n+")))
    (list (format "From %s:\n%s" (buffer-name)
                  (gemini-companion-point--fenced
                   text (if (derived-mode-p 'prog-mode)
                            (string-remove-suffix
                             "-mode" (symbol-name major-mode))
                          ""))))))

(defun gemini-companion-point--fenced (text language)
  "Return TEXT as a code block of Markdown in LANGUAGE."
  (let ((fence "```"))
    (while (string-search fence text)
      (setq fence (concat fence "`")))
    (format "%s%s\n%s\n%s" fence language (string-trim-right text "\n+") fence)))

;;;; Prompt

(defun gemini-companion-point--things ()
  "Return what is at point, as `gemini-companion-send-alist' has it."
  (let ((found (funcall (cdr (seq-find
                              (pcase-lambda (`(,mode . ,_))
                                (or (eq mode 'fundamental-mode)
                                    (derived-mode-p mode)))
                              gemini-companion-send-alist)))))
    (or found (user-error "Nothing here to send"))))

(defun gemini-companion-point--session (things)
  "Return the session for THINGS; ask if several would do."
  (let* ((sessions (or (gemini-companion-sessions)
                       (user-error "No CLI is connected; \
M-x gemini-companion-run starts one, /ide enable connects a running one")))
         (file (or (seq-some #'car-safe things) default-directory))
         (near (seq-filter (lambda (session)
                             (gemini-companion-point--inside
                              (file-truename file) session))
                           sessions)))
    (gemini-companion-session-read (or near sessions))))

(defun gemini-companion-point--inside (file session)
  "Return the name of FILE, a true name, in the directory of SESSION.
Return nil if FILE is not in that directory."
  (when-let* ((name (plist-get session :directory))
              (directory (file-truename name)))
    (and (gemini-companion-text-in-directory-p file directory)
         (file-relative-name file directory))))

(defun gemini-companion-point--text (things session)
  "Return the text for the prompt of SESSION about THINGS."
  (mapconcat (lambda (thing)
               (if (stringp thing)
                   (gemini-companion-point--quoted thing)
                 (apply #'gemini-companion-point--reference session thing)))
             things "\n"))

(defun gemini-companion-point--quoted (text)
  "Return TEXT in which no @ refers to a file."
  (replace-regexp-in-string "@\\([^[:space:]]\\)" "\\\\@\\1" text))

(defun gemini-companion-point--reference (session file where text)
  "Return a reference for SESSION to FILE, with WHERE and TEXT.
Ask about a file that is not shared, and omit its TEXT, or outside the
directory of the CLI."
  (when (or (file-remote-p file) (not (file-exists-p file)))
    (user-error "%s is not a file on this machine; a CLI cannot read it" file))
  (when (string-match-p "[[:cntrl:]]" file)
    (user-error "A prompt cannot name a file with a control character"))
  (let* ((file (concat (file-truename (file-name-directory file))
                       (file-name-nondirectory file)))
         (name (gemini-companion-point--inside file session))
         (hidden (gemini-companion-point--hidden-p file)))
    (unless (or (and name (not hidden))
                (y-or-n-p (format (if hidden
                                      "%s is not shared; name it anyway? "
                                    "%s is outside the project of the CLI; \
name it anyway? ")
                                  (abbreviate-file-name file))))
      (user-error "Nothing was sent"))
    (concat "@" (gemini-companion-point-escape (or name file))
            (and where (format " (%s)" where))
            (and text (not hidden)
                 (concat (if (string-search "\n" text) ":\n" ": ")
                         (gemini-companion-point--quoted text))))))

(defun gemini-companion-point--hidden-p (file)
  "Return non-nil if FILE, a true name, may not be shared."
  (if-let* ((buffer (find-buffer-visiting file)))
      (gemini-companion-privacy-hidden-p buffer)
    (gemini-companion-privacy-name-hidden-p file)))

(defun gemini-companion-point-escape (name)
  "Return the file NAME, quoted for the prompt of a CLI."
  (cond ((not (eq system-type 'windows-nt))
         (replace-regexp-in-string
          ;; A dot at the end would end the sentence.
          "[][ (){};|*?$`'\"#&<>!~\\,@]\\|\\.\\'" "\\\\\\&" name))
        ((string-match-p "[][ (){}^=;!'+,`~%$@#&]" name)
         (concat "\"" name "\""))
        (t name)))

(defun gemini-companion-point-attachment (session)
  "Return the text about what is at point here for a prompt of SESSION."
  (gemini-companion-point--text (gemini-companion-point--things) session))

;;;; Command

;;;###autoload
(defun gemini-companion-send (&optional compose)
  "Insert what is at point into the prompt of a CLI, and go there.
`gemini-companion-send-alist' defines what that is in each mode: in
a file, a reference to the lines of the region, the defun or the line;
elsewhere the marked files, the hit, the hunk, the last command and its
output, or the region.  The CLI is the one whose directory has the file,
or else you are asked.  If it runs outside of this Emacs, add the text
to the kill ring.

With COMPOSE, a prefix argument, insert it into the buffer of
\\[gemini-companion-compose], where you can write more."
  (interactive "P")
  (let* ((things (gemini-companion-point--things))
         (session (gemini-companion-point--session things))
         (text (gemini-companion-point--text things session)))
    (if compose
        (gemini-companion-compose session text)
      (message "%s" (gemini-companion-send-insert
                     (concat text (if (string-search "\n" text) "\n" " "))
                     session)))))

;;;###autoload
(define-obsolete-function-alias 'gemini-companion-send-file
  #'gemini-companion-send "0.1.0")
;;;###autoload
(define-obsolete-function-alias 'gemini-companion-send-region
  #'gemini-companion-send "0.1.0")
;;;###autoload
(define-obsolete-function-alias 'gemini-companion-send-diagnostic-at-point
  #'gemini-companion-send "0.1.0")

(provide 'gemini-companion-point)
;;; gemini-companion-point.el ends here
