;;; gemini-companion-location.el --- Locations in the output of a CLI  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Visit a location in the terminal of a CLI, such as app/bill.py:26 or @app/bill.py,
;; by a key or a click.  Only files in the project of the CLI are recognized.  The
;; screen is searched only after the key or click, so that the output of the terminal
;; is not slowed down.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-choice)
(require 'gemini-companion-names)
(require 'gemini-companion-roots)
(require 'gemini-companion-session)
(require 'gemini-companion-text)

(declare-function pulse-momentary-highlight-one-line "pulse")

;;;; State

(cl-defstruct (gemini-companion-location
               (:noinline t)
               (:constructor gemini-companion-location--make)
               (:copier nil))
  "A location in a file of the project of a CLI.
FILE is an absolute name for Emacs.  LINE and COLUMN are numbers from 1, or
nil if the text does not have them.  TEXT is the text on the screen."
  file line column text)

;;;; Text

(defconst gemini-companion-location--regexp
  (concat "\\([^ \t\n\"'`(){}<>|:;,*?!#\u2500-\u257f]+\\)"
          "\\(?::\\([0-9]+\\)\\(?::\\([0-9]+\\)\\)?\\)?")
  "Regexp for a text that may be a location: NAME, NAME:LINE or NAME:LINE:COLUMN.
Characters that draw boxes end a name.")

(defun gemini-companion-location--in (text column directory)
  "Return the location around COLUMN of TEXT, or nil.
COLUMN is the index of a character.  DIRECTORY is the directory of the CLI."
  (let ((start 0)
        (location nil))
    (while (and (not location)
                (string-match gemini-companion-location--regexp text start)
                (<= (match-beginning 0) column))
      (setq start (match-end 0))
      (when (< column (match-end 0))
        (setq location (gemini-companion-location--of-match text directory))))
    location))

(defun gemini-companion-location--of-match (text directory)
  "Return the location of the match data in TEXT, or nil if it is not valid.
DIRECTORY is the directory of the CLI."
  (let ((whole (match-string 0 text))
        (name (match-string 1 text))
        (line (match-string 2 text))
        (column (match-string 3 text)))
    ;; Plain words, such as test or build, are often names of files.
    (when (or line (string-match-p "/\\|.\\.." name))
      (when-let* ((file (or (gemini-companion-location--file name directory)
                            ;; An @ for the CLI, or the end of a sentence.
                            (gemini-companion-location--file
                             (gemini-companion-text-trim
                              (gemini-companion-text-trim name "@" 'left) "." 'right)
                             directory))))
        (gemini-companion-location--make
         :file file
         :line (and line (max 1 (string-to-number line)))
         :column (and column (max 1 (string-to-number column)))
         :text whole)))))

(defun gemini-companion-location--file (name directory)
  "Return the absolute name of the file NAME if it exists in the project, or nil.
NAME is relative to DIRECTORY, the directory of the CLI, or absolute on its
host."
  (let* ((host (file-remote-p directory))
         (file (cond ((and host (string-prefix-p "/" name)) (concat host name))
                     ((gemini-companion-names-in directory name)))))
    (and (equal host (ignore-errors (file-remote-p file)))
         (file-regular-p file)
         (let ((true-name (file-truename file)))
           (or (string-prefix-p (file-name-as-directory (file-truename directory))
                                true-name)
               (and (not host)
                    (car (gemini-companion-roots-outermost true-name)))))
         file)))

;;;; Rows of a terminal

(defun gemini-companion-location--directory ()
  "Return the directory of the CLI in the current buffer, a name for Emacs."
  (let* ((session (gemini-companion-session-of-terminal (current-buffer)))
         (directory (and session (gemini-companion-session-directory session))))
    (file-name-as-directory
     (if directory
         (concat (gemini-companion-session-remote session) directory)
       default-directory))))

(defun gemini-companion-location--at (position)
  "Return the location at POSITION of the current buffer, or nil."
  (save-excursion
    (goto-char position)
    (gemini-companion-location--in
     (buffer-substring-no-properties (line-beginning-position) (line-end-position))
     (- position (line-beginning-position))
     (gemini-companion-location--directory))))

(defun gemini-companion-location--on-screen ()
  "Return the locations in the selected window, the lowest one first."
  (let ((end (window-end nil t))
        (locations nil))
    (save-excursion
      (goto-char (window-start))
      (while (re-search-forward gemini-companion-location--regexp end t)
        (let ((beginning (match-beginning 0))
              (after (point)))
          (when-let* ((location (save-match-data
                                  (gemini-companion-location--at beginning))))
            (push location locations))
          (goto-char after))))
    (cl-delete-duplicates
     locations :from-end t
     :key (lambda (location)
            (list (gemini-companion-location-file location)
                  (gemini-companion-location-line location)))
     :test #'equal)))

;;;; Commands

(defun gemini-companion-location--visit (location)
  "Show LOCATION in another window, and select it."
  ;; Visiting a file may ask, so do that before windows change.
  (let ((buffer (find-file-noselect (gemini-companion-location-file location)))
        (line (gemini-companion-location-line location)))
    (pop-to-buffer buffer '((display-buffer-reuse-window
                             display-buffer-use-some-window
                             display-buffer-pop-up-window)
                            (category . gemini-companion-file)
                            (inhibit-same-window . t)))
    (when line
      (push-mark nil t)
      (let ((position (save-restriction
                        (widen)
                        (goto-char (point-min))
                        (forward-line (1- line))
                        (min (+ (point) (1- (or (gemini-companion-location-column
                                                 location)
                                                1)))
                             (line-end-position)))))
        (unless (<= (point-min) position (point-max))
          (widen))
        (goto-char position))
      (require 'pulse)
      (pulse-momentary-highlight-one-line (point)))))

(defun gemini-companion-location--read (locations)
  "Return one of LOCATIONS that the user chooses, by default the first."
  (gemini-companion-choice-read
   "Go to" (mapcar (lambda (location)
                     (cons (gemini-companion-names-shown
                            (gemini-companion-location-text location))
                           location))
                   locations)
   'gemini-companion-location))

(defun gemini-companion-visit-location ()
  "Go to the file and line at point in this terminal.
If there is none at point, as while a CLI runs, go to the location on
the screen.  If there are several, ask; the default is the lowest one.
Only files in the project of the CLI are recognized."
  (interactive)
  (let* ((here (gemini-companion-location--at (point)))
         (all (and (not here) (gemini-companion-location--on-screen))))
    (gemini-companion-location--visit
     (cond (here)
           ((null all) (user-error "No location in this project on the screen"))
           ((cdr all) (gemini-companion-location--read all))
           (t (car all))))))

(defun gemini-companion-visit-location-at-click (click)
  "Go to the file and line at CLICK, an event in a terminal.
If there is none, do what the terminal does at a click."
  (interactive "e")
  (let* ((start (event-start click))
         (position (posn-point start))
         (location (and (null (posn-area start))
                        (number-or-marker-p position)
                        (with-current-buffer (window-buffer (posn-window start))
                          (gemini-companion-location--at position)))))
    (if location
        (progn
          (select-window (posn-window start))
          (gemini-companion-location--visit location))
      (let ((command (let ((minor-mode-overriding-map-alist nil))
                       (key-binding (vector click)))))
        (when (commandp command)
          (call-interactively command nil (vector click)))))))

(provide 'gemini-companion-location)
;;; gemini-companion-location.el ends here
