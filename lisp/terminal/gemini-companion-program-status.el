;;; gemini-companion-program-status.el --- The Program Status Protocol  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The Program Status Protocol, revision 0.4: a program reports to its terminal, by the
;; escape sequence OSC 7501, what it is doing.  A report is a list of pairs, such as
;; "state=blocked:kind=permission".  It is text of a program: only the state and the ID
;; are read, which are checked and bounded, and no value is displayed.
;;
;; A program has a *record* for itself, and for each of its parts that it names by an
;; ID.  The records are an alist of (ID . STATE); the ID of the program is "".

;;; Code:

(require 'seq)

(defconst gemini-companion-program-status--states
  '("idle" "working" "done" "blocked" "error" "clear")
  "The states that a program may report.")

(defconst gemini-companion-program-status--most-records 64
  "Number of records of a program that are kept.")

(defun gemini-companion-program-status-read (report)
  "Return the record in REPORT, a cons of its ID and state, or nil.
REPORT is the text between \"7501;\" and the end of the sequence.  The value
is nil if REPORT must be ignored."
  (when (<= (length report) 4080)
    (let* ((pairs (gemini-companion-program-status--pairs report))
           (state (cdr (assoc "state" pairs)))
           (id (or (cdr (assoc "id" pairs)) "")))
      (when (and (member state gemini-companion-program-status--states)
                 (gemini-companion-program-status--id-p id))
        (cons id (intern state))))))

(defun gemini-companion-program-status--pairs (report)
  "Return the pairs in REPORT as an alist of strings, the last one first.
Skip malformed pairs."
  (let ((case-fold-search nil)
        (pairs nil))
    (dolist (pair (split-string report ":"))
      (when (string-match
             "\\`\\([a-z]\\{1,16\\}\\)=\\([A-Za-z0-9_.,+/=-]*\\)\\'" pair)
        (push (cons (match-string 1 pair) (match-string 2 pair)) pairs)))
    pairs))

(defun gemini-companion-program-status--id-p (id)
  "Return non-nil if ID is a path of at most 8 segments, or empty."
  (and (<= (length id) 128)
       (<= (length (split-string id "/")) 8)))

(defun gemini-companion-program-status-set (records record)
  "Return RECORDS after RECORD, a value of `gemini-companion-program-status-read'.
The state `clear' removes a record, and those of its parts."
  (pcase-let* ((`(,id . ,state) record)
               (others (seq-remove
                        (lambda (other)
                          (if (eq state 'clear)
                              (or (equal id "")
                                  (equal id (car other))
                                  (string-prefix-p (concat id "/") (car other)))
                            (equal id (car other))))
                        records)))
    (if (eq state 'clear)
        others
      (seq-take (cons record others)
                gemini-companion-program-status--most-records))))

(defun gemini-companion-program-status-at-prompt (records)
  "Return RECORDS at the prompt of a shell: no program works or is blocked."
  (seq-remove (lambda (record) (memq (cdr record) '(working blocked))) records))

(defun gemini-companion-program-status-state (records)
  "Return the state of a CLI with RECORDS: `ready', `working', `waiting' or nil."
  (let ((states (mapcar #'cdr records)))
    (cond ((memq 'blocked states) 'waiting)
          ((memq 'working states) 'working)
          (states 'ready))))

(provide 'gemini-companion-program-status)
;;; gemini-companion-program-status.el ends here
