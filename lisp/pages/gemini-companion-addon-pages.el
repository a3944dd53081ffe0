;;; gemini-companion-addon-pages.el --- The add-on for pages  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Declare the add-on to the core before its files are loaded: its commands and
;; components.  The add-on shows what all CLIs do, have written and wait for: the
;; overview, the status, notifications and the menus.

;;; Code:

(require 'gemini-companion-part)

;;;; Declarations

(cl-defmethod gemini-companion-part-commands ((_part (eql 'addon-pages)))
  "Return the commands of the overview, the status and the menus."
  '(("Reviews" "r"
     ("l" gemini-companion-list "Overview: what waits" (global)))
    ("Changes in files" "K"
     ("d" gemini-companion-turn-page "Overview: changes" (global change)
      :enable changes))
    ("Changes" nil
     ("k" gemini-companion-overview-keep "Keep" (overview)
      :enable overview-written
      :words ((cli . "keep") (turn . "keep") (file . "keep") (change . "keep")
              (kept . "not kept")))
     ("u" gemini-companion-overview-undo "Undo (C-u: whole edit)" (overview)
      :enable overview-written
      :words ((cli . "undo") (turn . "undo") (file . "undo") (several . "undo")
              (taken . "give back") (change . "undo") (kept . "undo")))
     ("K" gemini-companion-overview-keep-file "Keep file (C-u: turn)" (overview)
      :enable overview-written :words ((change . "keep file")))
     ("U" gemini-companion-overview-undo-file "Undo file (C-u: turn)" (overview)
      :enable overview-written :words ((change . "undo file")))
     ("B" gemini-companion-overview-undo-since
      "Back to before this turn" (overview)
      :enable overview-written)
     ("c" gemini-companion-comment "Comment" (overview)
      :enable overview-comment
      :words ((proposal . "comment") (cli . "comment")
              (turn . "comment") (turn-note . "comment") (file . "comment")
              (change . "comment")
              (kept . "comment") (undone . "comment")))
     ("l" gemini-companion-overview-postpone "Decide later, or now" (overview)
      :enable overview-written :words ((change . "later")))
     ("D" gemini-companion-remove-comments "Remove sent comments" (overview)))
    ("Waiting" nil
     ("a" gemini-companion-overview-accept "Accept" (overview)
      :enable overview-proposal :first t
      :words ((proposal . "accept") (waiting . "accept all")
              (cli . "accept") (turn . "accept")))
     ("r" gemini-companion-overview-reject "Reject" (overview)
      :enable overview-proposal :first t
      :words ((proposal . "reject") (waiting . "reject all")
              (cli . "reject") (turn . "reject")))
     ("x" gemini-companion-overview-exclude "Exclude hunk" (overview)
      :enable hunk
      :on excluded :stay t :words ((proposal . "exclude")))
     ("e" gemini-companion-overview-edit "Edit the proposal" (overview)
      :enable overview-file :words ((proposal . "edit")))
     ("!" gemini-companion-auto-accept "Auto-accept" (overview)
      :on auto-accept))
    ("Go to" nil
     ("RET" gemini-companion-overview-visit "Review or visit" (overview)
      :words ((note . "do it") (turn-note . "go there") (waiting . "first")
              (proposal . "review")
              (request . "show") (cli . "terminal") (turn . "first")
              (file . "visit") (taken . "visit")
              (change . "visit")
              (kept . "visit") (undone . "visit")))
     ("C-o" gemini-companion-overview-display "Show, stay here" (overview))
     ("n" gemini-companion-overview-next "Next" (overview) :stay t
      :words ((change . "next")))
     ("p" gemini-companion-overview-previous "Previous" (overview) :stay t)
     ("M-n" gemini-companion-overview-next-sibling "Next like it" (overview)
      :stay t
      :words ((cli . "next CLI") (turn . "next turn") (file . "next file")
              (several . "next file")))
     ("M-p" gemini-companion-overview-previous-sibling "Previous like it"
      (overview) :stay t)
     ("^" gemini-companion-overview-up "Row above" (overview) :stay t))
    ("Show" nil
     ("TAB" gemini-companion-overview-toggle "Unfold or fold" (overview) :stay t
      :words ((waiting . "fold") (request . "fold")
              (cli . "fold") (turn . "fold") (reviewed . "fold") (file . "fold")))
     ("S-TAB" gemini-companion-overview-cycle "Fold or unfold all" (overview) :stay t)
     ("W" gemini-companion-patch "Show as a patch" (overview)))
    ("Connection" nil
     ("?" gemini-companion-status "Status and problems" (global)))
    ("Display" "W"
     ("l" gemini-companion-list "Overview: what waits" (view)))
    (nil nil
     ("h" gemini-companion-menu nil (global))
     ("?" gemini-companion-overview-menu nil (overview))
     ("g" revert-buffer nil (overview))
     ("q" quit-window nil (overview))
     ("C-c C-c" gemini-companion-overview-accept-proposal nil (overview))
     ("C-c C-k" gemini-companion-overview-reject nil (overview))
     ("C-c C-x" gemini-companion-overview-exclude nil (overview))
     ("C-c C-e" gemini-companion-overview-edit nil (overview)))))

(cl-defmethod gemini-companion-part-members ((_part (eql 'addon-pages)))
  "Return the components that display requests and changes."
  '((notify proposal always) (row review always) (overview comment)
    (status overview) (invariants slices)))

(provide 'gemini-companion-addon-pages)
;;; gemini-companion-addon-pages.el ends here
