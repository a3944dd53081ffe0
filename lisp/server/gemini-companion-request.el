;;; gemini-companion-request.el --- What waits for the user  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A request is something of a CLI that waits for the user: an edit, a question in
;; the terminal, a permission.  Each kind is a struct that includes
;; `gemini-companion-request', with methods for the generic functions below.
;;
;; The owner of a kind has its open requests, and puts a function that returns them on
;; `gemini-companion-request-list-functions'.  It calls
;; `gemini-companion-request-notify' when a request arrives, changes or ends.  Files
;; that display or count requests read `gemini-companion-requests', and do not depend
;; on the kinds.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-part)
(require 'gemini-companion-session)
(require 'gemini-companion-text)
(require 'seq)

;;;; State

(cl-defstruct (gemini-companion-request (:noinline t) (:constructor nil) (:copier nil))
  "A request of SESSION, a CLI, which waits for an answer of the user.
SINCE is the time when it began to wait, in seconds.  KIND is a symbol, such
as `edit', `question' or `permission'.  PROBLEM is nil, or the reason why the
request cannot be displayed, a string.  COMMENTS are the comments of the user on
its text, the last one first, `gemini-companion-comment's; `comment' owns them."
  session
  (since (float-time))
  kind
  problem
  comments)

(defvar gemini-companion-request-list-functions nil
  "Functions that return the open requests of one kind each, a list.
They are called without arguments, often, and in redisplay.  The part that
owns a kind has its function here, by `gemini-companion-part-hooks'.")

(defvar gemini-companion-request-functions nil
  "Functions called with a request and an event, a symbol.
The event is `opened'; `changed' if the label, the text, the display, the
problem or the certainty of the request differs; `closed', after which it is no
longer in `gemini-companion-requests'; or then `answered', if the user has
answered an edit in its review.  An error in a function is only reported.")

;;;; What a kind of request does

(cl-defgeneric gemini-companion-request-label (request)
  "Return what the CLI of REQUEST does, a phrase in one line.
It follows the name of the CLI in sentences and is the row of REQUEST in
the overview, where the end may be cut.  For example: asks in its terminal.")

(cl-defgeneric gemini-companion-request-notice (request)
  "Return the text of the notification about REQUEST, or nil for none.
By default, that is the name of the CLI, the label, and the key that shows
REQUEST."
  (format "%s %s; %s shows it"
          (gemini-companion-session-name (gemini-companion-request-session request))
          (truncate-string-to-width (gemini-companion-request-label request) 80
                                    nil nil (gemini-companion-text-sign ?\u2026 "..."))
          (substitute-command-keys "\\[gemini-companion-review]")))

(cl-defgeneric gemini-companion-request-insert (_request)
  "Insert all that a request asks, to be read below its row of the overview.
By default, that is nothing.  There it cannot be answered."
  nil)

(cl-defgeneric gemini-companion-request-certain-p (_request)
  "Return non-nil if a request certainly waits, as by default.
One whose end may be unknown, or that has just begun, is not counted, and
comes last in the command `gemini-companion-review'."
  t)

(cl-defgeneric gemini-companion-request-listed-p (_request)
  "Return non-nil if a request has a row in the overview, as by default.
One that may end at once without the user has none: the rows below would jump."
  t)

(cl-defgeneric gemini-companion-request-show (request)
  "Show and select REQUEST, as the user has asked for it.
Signal a `user-error' if that is not possible.")

(cl-defgeneric gemini-companion-request-show-row (_request _select)
  "Display the row of a request, and select it if the second argument is non-nil.
Return non-nil if there are rows.  By default, there is none; return nil."
  nil)

(cl-defgeneric gemini-companion-request-follow (_request)
  "Go to the row of a request that has become one, if the user awaits it there.
By default, do nothing."
  nil)

(cl-defgeneric gemini-companion-request-waits-to-appear-p (_request)
  "Return non-nil if a request is to appear by itself, and has not yet.
By default, it never appears."
  nil)

(cl-defgeneric gemini-companion-request-appear (request)
  "Display REQUEST, which appears by itself, without selecting it.
`gemini-companion-request-waits-to-appear-p' then returns nil for it.")

(cl-defgeneric gemini-companion-request-buffer (_request)
  "Return the buffer in which a request is answered, or nil if there is none."
  nil)

(cl-defgeneric gemini-companion-request-shown-in-p (request buffer)
  "Return non-nil if REQUEST is to be seen in BUFFER, which is displayed.
There is no notification then.  By default, REQUEST is answered in BUFFER."
  (eq buffer (gemini-companion-request-buffer request)))

(cl-defgeneric gemini-companion-request-answer (request answer)
  "Answer REQUEST by ANSWER, as the user has decided that.
ANSWER is `allow', `refuse' or a cons (refuse . REASON).  Signal a
`user-error' if Emacs cannot answer, as by default."
  (ignore answer)
  (user-error "Answer in the terminal of %s"
              (gemini-companion-session-title
               (gemini-companion-request-session request))))

(cl-defgeneric gemini-companion-request-interrupted (_request)
  "End a request about which its CLI no longer asks, without a report of that.
By default, do nothing."
  nil)

(cl-defgeneric gemini-companion-request-open-p (request)
  "Return non-nil if REQUEST awaits an answer."
  (memq request (gemini-companion-requests)))

(cl-defgeneric gemini-companion-request-commented (_request)
  "Follow a change of the comments on a request; by default, do nothing."
  nil)

;;;; The open requests

(defun gemini-companion-requests (&optional session)
  "Return the open requests of all kinds, oldest first.
If SESSION is non-nil, return only those of its CLI."
  (seq-sort-by #'gemini-companion-request-since #'<
               (seq-filter
                (lambda (request)
                  (or (null session)
                      (gemini-companion-session-same-p
                       session (gemini-companion-request-session request))))
                (seq-mapcat #'funcall gemini-companion-request-list-functions))))

(defun gemini-companion-requests-certain (&optional session)
  "Return the requests that certainly wait, oldest first.
SESSION is as for `gemini-companion-requests'."
  (seq-filter #'gemini-companion-request-certain-p
              (gemini-companion-requests session)))

(defun gemini-companion-request-next ()
  "Return the request that the user should answer next, or nil.
It is the oldest request that certainly waits and can be shown, or else the
oldest one that certainly waits, or else the oldest one.  In the buffer of a
request, it is the next one in this order, and the first one after the last,
so that each request can be reached."
  (let* ((requests (seq-sort-by #'gemini-companion-request--rank #'<
                                (gemini-companion-requests)))
         (here (seq-find (lambda (request)
                           (eq (window-buffer)
                               (gemini-companion-request-buffer request)))
                         requests)))
    (or (cadr (memq here requests))
        (car requests))))

(defun gemini-companion-request--rank (request)
  "Return the rank of REQUEST among those to be answered next, a number.
Requests of one rank are in the order of their age."
  (cond ((not (gemini-companion-request-certain-p request)) 2)
        ((gemini-companion-request-problem request) 1)
        (t 0)))

(defun gemini-companion-request-notify (request event)
  "Call the functions about REQUEST after EVENT.
For events, see `gemini-companion-request-functions'.  The owner of REQUEST
calls this once `gemini-companion-requests' is up to date."
  (gemini-companion-part-update-lighter)
  (run-hook-wrapped 'gemini-companion-request-functions
                    #'gemini-companion-text-call request event))

;;;; Reading in the minibuffer

(defun gemini-companion-request-read (request prompt &rest arguments)
  "Return the text that the user types after PROMPT, about REQUEST.
If REQUEST ended meanwhile, add the text to the kill ring, and return nil.
PROMPT and ARGUMENTS are those of `read-string'."
  ;; Emacs signals an error if the current buffer and its frame are deleted
  ;; meanwhile.
  (let ((typed (with-temp-buffer (apply #'read-string prompt arguments))))
    (if (gemini-companion-request-open-p request)
        typed
      (gemini-companion-text-keep typed "The CLI no longer waits for an answer")
      nil)))

(provide 'gemini-companion-request)
;;; gemini-companion-request.el ends here
