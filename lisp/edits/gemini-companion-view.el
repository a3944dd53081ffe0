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
  "The display of EDIT for review.
Each kind of view is a struct that includes this one, with methods for the
generic functions `gemini-companion-view-...'.  BUFFERS are the buffers in its
windows, the one to select first.  HUNKS are the displayed hunks.  FRAME is its
frame, LAYOUT the window configuration before the review, and WINDOWS are the
windows of BUFFERS when the view was opened.  REQUESTED is non-nil if the user
has asked for the review; until then, its letters are no keys.  DRAWN is the time
since when the view is displayed as it is, or nil; until then, no key answers."
  edit buffers hunks frame layout windows requested drawn)

;;;; From an edit to its view

(cl-defgeneric gemini-companion-view-show (edit requested)
  "Display EDIT in a view, and record it by `gemini-companion-edit-set-view'.
Signal an error on failure.  REQUESTED is nil if the review begins by itself.
gemini-companion-review.el has the method.")

;;;; Methods of a kind of view

(cl-defgeneric gemini-companion-view-open (view)
  "Display VIEW on the selected frame, and set its buffers.
If this fails, the view is closed.")

(cl-defgeneric gemini-companion-view-hunk (view)
  "Return the displayed hunk at point in VIEW, or nil.
Menus call this, so it must not compare texts or display a message.")

(cl-defgeneric gemini-companion-view-move (view count)
  "Move forward by COUNT hunks in VIEW.")

(cl-defgeneric gemini-companion-view-go-to (view number)
  "Go to the hunk with NUMBER, from 0 on, in VIEW.")

(cl-defgeneric gemini-companion-view-edit-proposal (view)
  "Go to the proposal of VIEW to edit it, or back.")

(cl-defgeneric gemini-companion-view-compare (view)
  "Compare the original and the proposal of VIEW again.")

(cl-defgeneric gemini-companion-view-mark (view)
  "Update the excluded hunks in VIEW, its keys, and whether the review has ended.
Do not compare the texts: an undo may be in progress.")

(cl-defgeneric gemini-companion-view-close (view)
  "Close VIEW, but leave windows, original and proposal alone.")

(cl-defgeneric gemini-companion-view-follow (_view _event)
  "Update a view after an event of its edit; see `gemini-companion-edit-notify'."
  nil)

(cl-defgeneric gemini-companion-view-check (_view)
  "Signal a `user-error' unless the user has seen what would be answered in a view."
  nil)

(cl-defgeneric gemini-companion-view-session (view)
  "Return the session at point in VIEW, one of several edits, or nil.")

(cl-defgeneric gemini-companion-view-edits (view)
  "Return the edits at point in VIEW, one of several edits, a list.")

(cl-defgeneric gemini-companion-view-edit-here (view)
  "Return the edit at point in VIEW, one of several edits, or nil.
It need not await an answer; see `gemini-companion-view-edits'.")

(cl-defgeneric gemini-companion-view-comment (_view)
  "Comment on what is at point in a view of several edits, if it is no file.
Return non-nil if that was done."
  nil)

(cl-defgeneric gemini-companion-view-texts (view)
  "Return the texts to which line numbers at point in VIEW refer.
VIEW displays several edits.  The value is a cons of two vectors of lines, each
with its newline: the text with the displayed changes, and the text without
them.")

(provide 'gemini-companion-view)
;;; gemini-companion-view.el ends here
