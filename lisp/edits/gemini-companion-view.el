;;; gemini-companion-view.el --- The protocol of the views of a review  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A view displays an edit for review.  Each kind of view is a struct that includes
;; `gemini-companion-view', with methods for these generic functions.  The overview
;; is a view of several edits.

;;; Code:

(require 'cl-lib)
(require 'seq)

;;;; The record

(cl-defstruct (gemini-companion-view (:noinline t) (:constructor nil) (:copier nil))
  "The review of EDIT on the screen.
Each kind of view is a type that includes this one, with methods for the
generic functions `gemini-companion-view-...'.  BUFFERS are the buffers
in the windows of the view, first the one to go to, and HUNKS those that
it displays.  KIND is its key in `gemini-companion-review-kinds', CHOSEN
the kind that the user has chosen, or nil.  FRAME is its frame, and SIZE
the size of that when the view was opened; LAYOUT are the windows before
the review, WINDOWS those of BUFFERS when it was opened, and TERMINAL is
the window of the CLI beside them, or nil."
  edit buffers hunks kind chosen frame size layout windows terminal)

;;;; From an edit to its view

(cl-defgeneric gemini-companion-view-show (edit select)
  "Show EDIT in a view, and record that, or signal an error.
`gemini-companion-edit-set-view' records it.  SELECT is `select' if the user
has asked for EDIT, `next' if it takes the place of a review that the user
has just answered, or nil if it appears by itself.  The file review.el has
the method.")

;;;; What a kind of view does

(cl-defgeneric gemini-companion-view-open (view keep)
  "Display VIEW on the selected frame, and set its buffers.
If KEEP is non-nil, the selected window stays visible.  If this fails,
the view is closed.")

(cl-defgeneric gemini-companion-view-hunk (view)
  "Return the hunk at point in VIEW, as it is displayed, or nil.
A menu asks for it, so this compares nothing and shows no message.")

(cl-defgeneric gemini-companion-view-line (_view)
  "Return the line of the proposal at point in a view, or nil if unknown."
  nil)

(cl-defgeneric gemini-companion-view-move (view count)
  "Move forward by COUNT hunks in VIEW, or parts of a long line.")

(cl-defgeneric gemini-companion-view-go-to (view number)
  "Go to the hunk with NUMBER, from 0 on, in VIEW.")

(cl-defgeneric gemini-companion-view-edit-proposal (view)
  "Go to the proposal of VIEW to edit it, or back.")

(cl-defgeneric gemini-companion-view-back (_view)
  "Return the label of the key that edits the proposal, in the proposal.
It is nil if the proposal is beside the other buffers of the view."
  nil)

(cl-defgeneric gemini-companion-view-fits-p (view)
  "Return non-nil if the selected frame displays VIEW well.
By default, a window must show one of its buffers."
  (seq-some #'get-buffer-window (gemini-companion-view-buffers view)))

(cl-defgeneric gemini-companion-view-insert-notes (_edit)
  "Insert what the user has written about EDIT into its diff.
The diff is the text of the current buffer, which is not displayed yet.
gemini-companion-comment.el has the method."
  nil)

(cl-defgeneric gemini-companion-view-compare (view)
  "Compare the original and the proposal of VIEW again.")

(cl-defgeneric gemini-companion-view-mark (view redraw)
  "Display in VIEW which hunks are excluded, and whether the review has ended.
If REDRAW is nil, the view will be compared again anyway; that must not
be done now, in the midst of an undo.  By default, compare."
  (when redraw
    (gemini-companion-view-compare view)))

(cl-defgeneric gemini-companion-view-close (view)
  "Close VIEW, but leave windows, original and proposal alone.")

(cl-defgeneric gemini-companion-view-follow (_view _event)
  "Update a view after an event of its edit; see `gemini-companion-edit-functions'."
  nil)

(cl-defgeneric gemini-companion-view-edits (view)
  "Return the edits at point in VIEW, one of several edits, and the CLI.
The value is a cons (SESSION . EDITS).")

(cl-defgeneric gemini-companion-view-session (_view)
  "Return the session of the CLI at point in a view of several edits, or nil."
  nil)

(cl-defgeneric gemini-companion-view-edit-here (view)
  "Return the edit at point in VIEW, one of several edits, or nil.
It need not await an answer; see `gemini-companion-view-edits'.")

(cl-defgeneric gemini-companion-view-texts (view)
  "Return what the line numbers at point in VIEW, one of several edits, count.
The value is a cons of two vectors of lines, each with its newline: the
text with the changes that are displayed, and the one without them.")

(provide 'gemini-companion-view)
;;; gemini-companion-view.el ends here
