;;; gemini-companion-inquiry.el --- What a model asks the user  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; An inquiry is a request in which the model of a linked CLI asks the user one or more
;; questions, with answers to choose from.  It arrives and ends like a permission.
;; There is no default answer.  If the hook of the CLI waits for an answer, the user
;; can choose one in Emacs, or type another; otherwise, the user answers in the
;; terminal.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-choice)
(require 'gemini-companion-clients)
(require 'gemini-companion-commands)
(require 'gemini-companion-permission)
(require 'gemini-companion-request)
(require 'gemini-companion-session)
(require 'gemini-companion-text)

;;;; Keys

(defvar gemini-companion-inquiry-mode-map
  ;; The map of permissions is no parent, since its keys allow and refuse.
  (gemini-companion-commands-special-map 'inquiry)
  "Keys in the buffer of a question of the model.")

;;;; State

(cl-defstruct (gemini-companion-inquiry-choice
               (:noinline t)
               (:constructor gemini-companion-inquiry--make-choice
                             (question header options multiple))
               (:copier nil))
  "A question of the model, with the answers that it offers.
QUESTION is a string, and HEADER a short name for it, maybe empty.  OPTIONS
are the answers, lists (LABEL DESCRIPTION) of strings.  MULTIPLE is non-nil if
several of them may be chosen."
  question header options multiple)

(cl-defstruct (gemini-companion-inquiry
               (:noinline t)
               (:include gemini-companion-permission (kind 'inquiry))
               (:constructor gemini-companion-inquiry--make)
               (:copier nil))
  "A request with the questions of a model: CHOICES, in their order.
CHOICES is a list of `gemini-companion-inquiry-choice'."
  choices)

(defvar gemini-companion-inquiry--longest 2000
  "Maximum number of characters of one text of a question to display.")

(defvar gemini-companion-inquiry--most 50
  "Maximum number of questions, and of options of one question, to display.")

(cl-defmethod gemini-companion-permission-new ((_kind (eql 'inquiry)) parsed slots)
  "Return the inquiry for PARSED and SLOTS."
  (pcase-let* ((all (plist-get parsed :choices))
               (`(,choices . ,cut) (gemini-companion-inquiry--fit all)))
    (apply #'gemini-companion-inquiry--make
           :tool (plist-get parsed :tool)
           :choices choices
           :cut cut
           :summary (gemini-companion-inquiry--summary choices (length all))
           slots)))

(defun gemini-companion-inquiry--fit (choices)
  "Return (FITTING . OMITTED): the part of CHOICES to display, and a number.
CHOICES are plists from the server.  OMITTED is the number of omitted
characters; an omitted question or option counts as one."
  (let ((missing 0))
    (cl-flet ((fit (text)
                (let ((more (- (length text) gemini-companion-inquiry--longest)))
                  (if (<= more 0)
                      text
                    (cl-incf missing more)
                    (substring text 0 gemini-companion-inquiry--longest))))
              (most (list)
                (cl-incf missing
                         (max 0 (- (length list) gemini-companion-inquiry--most)))
                (seq-take list gemini-companion-inquiry--most)))
      (cons (mapcar (pcase-lambda ((map :question :header :options :is_multiple))
                      (gemini-companion-inquiry--make-choice
                       (fit question) (fit header)
                       (mapcar (lambda (option) (mapcar #'fit option))
                               (most options))
                       is_multiple))
                    (most choices))
            missing))))

(defun gemini-companion-inquiry--summary (choices count)
  "Return one line for the first of CHOICES, with its options.
COUNT is the number of all questions."
  (let ((choice (car choices)))
    (string-join
     (delq nil
           (list
            (propertize "Question" 'face 'gemini-companion-permission-name)
            (gemini-companion-text-escaped-line
             (gemini-companion-inquiry-choice-question choice) 200)
            (when-let* ((options (gemini-companion-inquiry-choice-options choice)))
              (format "(%s)"
                      (mapconcat (lambda (option)
                                   (gemini-companion-text-escaped-line
                                    (car option) 40))
                                 (seq-take options 10) ", ")))
            (when (< 1 count)
              (format "+%d more" (1- count)))))
     "  ")))

;;;; Request

(cl-defmethod gemini-companion-permission-major-mode
  ((_inquiry gemini-companion-inquiry))
  "Return the mode for a question of the model."
  'gemini-companion-inquiry-mode)

(cl-defmethod gemini-companion-permission-context
  ((_inquiry gemini-companion-inquiry))
  "Return the context of the keys of a question."
  'inquiry)

(cl-defmethod gemini-companion-request-answer
  ((inquiry gemini-companion-inquiry) answer)
  "Send ANSWER, a cons (refuse . TEXT) with the words of the user, to INQUIRY.
Signal a `user-error' for another answer."
  (unless (consp answer)
    (user-error "Answer in the terminal of %s"
                (gemini-companion-permission-title inquiry)))
  (cl-call-next-method))

;;;; Text

(define-derived-mode gemini-companion-inquiry-mode gemini-companion-permission-mode
  "Question"
  "Mode of a buffer with questions of a model.

\\{gemini-companion-inquiry-mode-map}"
  :interactive nil
  (gemini-companion-commands-letters-are-keys 'gemini-companion-inquiry-mode))

(cl-defmethod gemini-companion-permission-insert ((inquiry gemini-companion-inquiry))
  "Insert the questions of INQUIRY with their options, and the origin of INQUIRY.
Text of the model is indented, so that it cannot imitate a line of Emacs."
  (dolist (choice (gemini-companion-inquiry-choices inquiry))
    (gemini-companion-inquiry--insert choice))
  (gemini-companion-permission-insert-cut
   (gemini-companion-permission-cut inquiry))
  (let ((start (point)))
    (gemini-companion-permission-insert-facts inquiry)
    (add-face-text-property start (point) 'shadow 'append)))

(defun gemini-companion-inquiry--insert (choice)
  "Insert CHOICE, its numbered options, and the number of options to choose."
  (pcase-let (((cl-struct gemini-companion-inquiry-choice
                          question header options multiple)
               choice))
    (gemini-companion-permission-insert-row
     "Question" (cond ((null options) "")
                      (multiple "any number of answers")
                      (t "one answer")))
    (gemini-companion-permission-insert-argument header
                                                 (propertize question 'face 'bold))
    (seq-do-indexed
     (pcase-lambda (`(,label ,description) index)
       (gemini-companion-permission-insert-argument
        (format "%d. %s" (1+ index) label) description))
     options)
    (insert "\n")))

;;;; Answers

(defun gemini-companion-inquiry--candidates (choice)
  "Return the options of CHOICE as an alist of (TEXT . LABEL).
TEXT is the displayed candidate, which begins with a number, so that it is
unique."
  (seq-map-indexed
   (pcase-lambda (`(,label ,_) index)
     (cons (format "%d. %s" (1+ index)
                   (gemini-companion-text-escaped-line label 60))
           label))
   (gemini-companion-inquiry-choice-options choice)))

(defun gemini-companion-inquiry--insert-blanks ()
  "Make SPC and ? insert themselves in the minibuffer.
By default, they complete the names of options."
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map (current-local-map))
    (define-key map " " #'self-insert-command)
    (define-key map "?" #'self-insert-command)
    (use-local-map map)))

(defun gemini-companion-inquiry--read-one (prompt candidates)
  "Read an answer with PROMPT, and return it, a string, or nil if it is empty.
CANDIDATES are those of `gemini-companion-inquiry--candidates'.  The user may
also type the number of an option, or another text."
  (let* ((typed (gemini-companion-text-trim
                 (minibuffer-with-setup-hook #'gemini-companion-inquiry--insert-blanks
                   (completing-read prompt (mapcar #'car candidates)))))
         (number (and (string-match-p "\\`[0-9]+\\'" typed)
                      (string-to-number typed))))
    (cond ((string-empty-p typed) nil)
          ((cdr (assoc typed candidates)))
          ((and number (< 0 number))
           (or (cdr (nth (1- number) candidates)) typed))
          (t typed))))

(defun gemini-companion-inquiry--read (choice)
  "Return the answers of the user to CHOICE, a list of strings.
If several may be chosen, an empty input ends the list.  Signal a `user-error'
if there is no answer, as there is no default."
  (let* ((name (gemini-companion-text-escaped-line
                (if (string-blank-p (gemini-companion-inquiry-choice-header choice))
                    (gemini-companion-inquiry-choice-question choice)
                  (gemini-companion-inquiry-choice-header choice))
                60))
         (multiple (gemini-companion-inquiry-choice-multiple choice))
         (left (gemini-companion-inquiry--candidates choice))
         (answers nil)
         (answer t))
    (while (and answer (or multiple (null answers)))
      (setq answer (gemini-companion-inquiry--read-one
                    (format (if answers "%s (RET to end): " "%s: ") name) left))
      (when answer
        (push answer answers)
        (setq left (cl-remove answer left :key #'cdr :test #'equal))))
    (or (nreverse answers)
        (user-error "Not answered: nothing was chosen"))))

(defun gemini-companion-inquiry-choose ()
  "Answer the question of this buffer: choose, or type another answer.
You confirm the answer before it is sent, since some completion interfaces
choose the first option for an empty input."
  (interactive nil gemini-companion-inquiry-mode)
  (let ((inquiry (gemini-companion-permission-to-answer)))
    (let* ((answers (mapcar
                     (lambda (choice)
                       (cons (if (string-blank-p
                                  (gemini-companion-inquiry-choice-header choice))
                                 (gemini-companion-inquiry-choice-question choice)
                               (gemini-companion-inquiry-choice-header choice))
                             (gemini-companion-inquiry--read choice)))
                     (gemini-companion-inquiry-choices inquiry)))
           (said (mapconcat (lambda (answer) (string-join (cdr answer) ", "))
                            answers "; "))
           (text (gemini-companion-client-answers-text
                  (gemini-companion-session-client
                   (gemini-companion-permission-session inquiry))
                  answers)))
      (unless (gemini-companion-choice-y-or-n-p
               (format "Send the answer %s? "
                       (gemini-companion-text-escaped-line said 200)))
        (user-error "Not answered"))
      (condition-case problem
          (gemini-companion-permission-decide inquiry (cons 'refuse text) "Answered")
        ;; The question may have ended meanwhile.
        (user-error
         (gemini-companion-text-keep said (error-message-string problem)))))))

(provide 'gemini-companion-inquiry)
;;; gemini-companion-inquiry.el ends here
