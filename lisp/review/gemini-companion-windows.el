;;; gemini-companion-windows.el --- Where a review is displayed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Make a window for a review that leaves the terminal of the CLI and the selected
;; window visible, and lay out a unified diff or an Ediff session in it.  Record the
;; layout before the review, and restore it afterwards, even on another tab.  A window
;; for another buffer, such as the overview, covers none of these windows.
;;
;; Other files create, delete and resize windows, and set their buffers, only by
;; `display-buffer'.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-edit)
(require 'gemini-companion-names)
(require 'gemini-companion-session)
(require 'gemini-companion-windows-at-once)

(defvar gemini-companion-review-kinds)
(defvar gemini-companion-review-view)

;;;; State

(defconst gemini-companion-windows--side-columns 80
  "Minimum width of each of two windows beside each other.")

(defconst gemini-companion-windows-ediff-columns
  (* 2 gemini-companion-windows--side-columns)
  "Minimum width of an Ediff session.")

(defconst gemini-companion-windows-ediff-lines 15
  "Minimum height of an Ediff session.  Below it, a unified diff shows more.")

(defconst gemini-companion-windows--diff-columns 60
  "Minimum width of the window of a unified diff beside other windows.")

(defconst gemini-companion-windows--diff-lines 8
  "Minimum height of the window of a unified diff.")

(defconst gemini-companion-windows--taken-lines 12
  "Minimum height of the window of a file in which a unified diff is displayed.")

(defconst gemini-companion-windows--quit-parameters
  '(quit-restore quit-restore-prev)
  "Parameters of a window that determine the effect of quitting it.
Emacs 31 saves the first one in the second one if the window displays another
buffer; earlier versions overwrite the first one.")

;; Emacs 31 defines this variable.
(defvar quit-restore-window-no-switch)

(defvar gemini-companion-windows--last-diff nil
  "Cons (EDIT . WINDOW) of the last unified diff, or nil.
WINDOW may be deleted, or display another buffer now.")

(cl-defstruct (gemini-companion-windows--layout
               (:noinline t)
               (:constructor gemini-companion-windows--make-layout)
               (:copier nil))
  "The windows of a frame before a review.
CONFIGURATION is the window configuration of FRAME.  SELECTED is the selected
window, and the marker POINT is at its point: a window configuration lacks that
point if other windows display the same buffer."
  frame configuration selected point)

(cl-defstruct (gemini-companion-windows--shown
               (:noinline t)
               (:constructor gemini-companion-windows--make-shown)
               (:copier nil))
  "State of a window that the user may have changed during a review.
QUIT is an alist of its `gemini-companion-windows--quit-parameters'.  The other
slots are values of the functions with these names, such as `window-start'."
  window buffer edges start point quit margins)

;;;; A window for a review

(defun gemini-companion-windows--make (buffer edit lines columns &optional keep)
  "Show BUFFER of EDIT in a window of the selected frame, and return the window.
LINES and COLUMNS are its minimum height and width.  The terminal of the CLI
stays visible if there is room beside it; otherwise the window gets the whole
frame.  If KEEP is non-nil, the selected window stays visible and selected;
return nil if there is no room for that."
  (let* ((ignore-window-parameters t)
         (window-min-height 1)
         (used (and keep (gemini-companion-windows--used)))
         (terminal (gemini-companion-windows-terminal edit))
         (beside (or (and terminal
                          (gemini-companion-windows--beside
                           (delete-dups (delq nil (list used terminal)))
                           lines columns))
                     (and used
                          (gemini-companion-windows--beside
                           (list used) lines columns)))))
    (cond (beside
           (gemini-companion-windows--fill beside buffer))
          ((null used)
           (let ((window (car (gemini-companion-windows--main))))
             (gemini-companion-windows--fill window buffer)
             (delete-other-windows window)
             window)))))

(defun gemini-companion-windows--used ()
  "Return the selected window or, in the minibuffer, the one selected before."
  (or (minibuffer-selected-window)
      (if (window-minibuffer-p)
          (car (gemini-companion-windows--main))
        (selected-window))))

(defun gemini-companion-windows--fill (window buffer)
  "Display BUFFER in WINDOW, even if WINDOW is dedicated, and return WINDOW."
  (set-window-dedicated-p window nil)
  (set-window-buffer window buffer)
  window)

(defun gemini-companion-windows--main ()
  "Return the windows of the selected frame, without side windows."
  (seq-remove (lambda (window) (window-parameter window 'window-side))
              (window-list nil 'no-minibuffer)))

(defun gemini-companion-windows-terminal (edit &optional frame)
  "Return the window of the terminal of the CLI of EDIT, or nil.
Search FRAME, by default the selected frame."
  (when-let* ((buffer (gemini-companion-session-terminal
                       (gemini-companion-edit-session edit))))
    (get-buffer-window buffer frame)))

(defun gemini-companion-windows--beside (kept lines columns)
  "Return a window beside the windows KEPT, or nil if there is no room.
It is the largest window that is not in KEPT.  If that is too small, delete
the other windows that are not in KEPT; and if it is still too small, split
the first window of KEPT.  For LINES and COLUMNS, see
`gemini-companion-windows--make'."
  (let* ((others (seq-difference (gemini-companion-windows--main) kept #'eq))
         (largest (car (seq-sort-by (lambda (window)
                                      (* (window-total-width window)
                                         (window-total-height window)))
                                    #'> others)))
         ;; With the new window at one of these sides, the first window of KEPT
         ;; stays at the edge of the frame.
         (sides (list (if (< 0 (window-left-column (car kept))) 'left 'right)
                      (if (< (window-top-line (frame-root-window))
                             (window-top-line (car kept)))
                          'above
                        'below))))
    (unless (gemini-companion-windows--fits-p largest lines columns)
      (gemini-companion-windows--delete (remq largest others) kept))
    (if (gemini-companion-windows--fits-p largest lines columns)
        largest
      (gemini-companion-windows--delete (delq nil (list largest)) (cdr kept))
      (gemini-companion-windows--split (car kept) sides (null (cdr kept))
                                       lines columns))))

(defun gemini-companion-windows--fits-p (window lines columns)
  "Return non-nil if WINDOW has at least LINES and COLUMNS.
WINDOW may be nil: then return nil."
  (and window
       (<= columns (window-total-width window))
       (<= lines (window-total-height window))))

(defun gemini-companion-windows--delete (windows kept)
  "Delete WINDOWS; the windows KEPT keep their sizes, if possible."
  (let ((sizes (mapcar (lambda (window)
                         (list window (window-total-width window)
                               (window-total-height window)))
                       kept)))
    (mapc #'delete-window windows)
    (pcase-dolist (`(,window ,width ,height) sizes)
      ;; Emacs signals an error if no window is in that direction.
      (ignore-errors
        (window-resize window (- width (window-total-width window)) t t))
      (ignore-errors
        (window-resize window (- height (window-total-height window)) nil t)))))

(defun gemini-companion-windows--split (window sides narrow lines columns)
  "Return a new window beside, above or below WINDOW, or nil without room.
SIDES is a list of `left' or `right' and `above' or `below'.  If NARROW is
non-nil, a window above or below may have any width.  See
`gemini-companion-windows--make' for LINES and COLUMNS."
  (let* ((width (window-total-width window))
         (height (window-total-height window))
         (most-lines (/ (* 2 height) 3))
         (ediff-fits (and (<= gemini-companion-windows-ediff-columns width)
                          (<= gemini-companion-windows-ediff-lines most-lines)))
         ;; A turn may have both views: a window that fits Ediff is not changed
         ;; between them.
         (least-columns (if (and ediff-fits
                                 (plist-get
                                  (cddr (assq gemini-companion-review-view
                                              gemini-companion-review-kinds))
                                  :wide))
                            gemini-companion-windows-ediff-columns
                          columns))
         (new-columns (max least-columns gemini-companion-windows--side-columns
                           (/ width 2))))
    (cond ((and (<= (+ new-columns gemini-companion-windows--side-columns) width)
                (<= lines height))
           (split-window window (- new-columns) (car sides)))
          ((and (<= lines most-lines)
                (or narrow (<= least-columns width)))
           (split-window window (- most-lines) (cadr sides))))))

;;;; A unified diff

(defun gemini-companion-windows-for-diff (edit &optional keep)
  "Return the window of this frame for a unified diff of EDIT, or nil.
It is the window of the previous diff of the same turn, or else a window that
displays the file.  It is never the terminal of the CLI, a low window or, if
KEEP is non-nil, the selected window."
  (pcase-let* ((`(,last . ,last-window) gemini-companion-windows--last-diff)
               (file (gemini-companion-names-buffer
                      (gemini-companion-edit-file edit)))
               (kept (list (gemini-companion-windows-terminal edit)
                           (and keep (or (minibuffer-selected-window)
                                         (selected-window)))))
               (candidates
                (append (and (window-live-p last-window)
                             (eq (gemini-companion-edit-turn last)
                                 (gemini-companion-edit-turn edit))
                             (list last-window))
                        (and file (get-buffer-window-list file)))))
    (seq-find (lambda (window)
                (and (eq (window-frame window) (selected-frame))
                     (<= gemini-companion-windows--taken-lines
                         (window-body-height window))
                     (not (memq window kept))))
              candidates)))

(defun gemini-companion-windows-show-diff (buffer edit preferred &optional keep)
  "Show BUFFER, the unified diff of EDIT, and select its window.
PREFERRED is the value of `gemini-companion-windows-for-diff'.  If it is nil,
use the selected window, or if the terminal of the CLI is on the frame, make a
window.  If KEEP is non-nil, the selected window stays visible.  The user
option `display-buffer-alist' takes precedence.  Signal a `user-error' if there
is no window for BUFFER."
  (let* ((in-place (lambda (buffer _alist)
                     (when preferred
                       (gemini-companion-windows--fill preferred buffer))))
         (in-selected (lambda (buffer alist)
                        ;; The terminal may be in the selected window.
                        (unless (or (gemini-companion-windows-terminal edit)
                                    (< (window-body-height)
                                       gemini-companion-windows--diff-lines))
                          (display-buffer-same-window buffer alist))))
         (in-new (lambda (buffer _alist)
                   (gemini-companion-windows--make
                    buffer edit
                    gemini-companion-windows--diff-lines
                    gemini-companion-windows--diff-columns
                    keep)))
         ;; If all windows are dedicated, Emacs would make a new frame.
         (nowhere (lambda (_buffer _alist) 'fail))
         (window (display-buffer
                  buffer `((,in-place ,in-selected ,in-new ,nowhere)
                           (category . gemini-companion-review)
                           (inhibit-switch-frame . t)
                           (inhibit-same-window . ,keep)))))
    (unless window
      (user-error "No window for the review of %s"
                  (gemini-companion-edit-name edit)))
    (select-window window)
    (setq gemini-companion-windows--last-diff (cons edit window))))

(defun gemini-companion-windows-exchange (buffer)
  "Replace the buffer of a review in the selected window by BUFFER."
  (gemini-companion-windows-at-once
    (set-window-buffer (selected-window) buffer)))

;;;; An Ediff session

(define-error 'gemini-companion-windows-too-small
  "This frame is too small for Ediff" 'user-error)

(defun gemini-companion-windows-make-for-ediff (buffer edit &optional keep)
  "Show BUFFER of EDIT in a window that fits Ediff, and return the window.
If KEEP is non-nil, the selected window stays visible.  If there is no
room, signal `gemini-companion-windows-too-small'."
  (let* ((terminal (gemini-companion-windows-terminal edit))
         (window (gemini-companion-windows--make
                  buffer edit gemini-companion-windows-ediff-lines
                  gemini-companion-windows-ediff-columns keep)))
    (when (or (null window)
              ;; Beside a unified diff, the terminal may stay visible.
              (and keep terminal
                   (not (gemini-companion-windows-terminal edit))))
      (signal 'gemini-companion-windows-too-small nil))
    window))

(defun gemini-companion-windows-lay-out-ediff (windows original proposal set-up)
  "Show the buffers ORIGINAL and PROPOSAL beside each other, above a panel.
They replace WINDOWS, the windows of their session, at least one; other windows
do not change.  Call SET-UP with the windows of ORIGINAL and PROPOSAL while the
window of the panel is selected; SET-UP must set its buffer."
  (let* ((ignore-window-parameters t)
         (window-min-height 1)
         ;; Other windows keep their sizes.
         (window-combination-limit t)
         (window (car windows)))
    (save-current-buffer
      (mapc #'delete-window (cdr windows)))
    ;; Ediff dedicates the window of the panel, which may be the remaining window.
    (set-window-dedicated-p window nil)
    (set-window-parameter window 'mode-line-format nil)
    (let ((panel-window (split-window window -2 'below))
          (proposal-window (split-window window nil 'right)))
      (set-window-buffer window original)
      (set-window-buffer proposal-window proposal)
      (select-window panel-window)
      (funcall set-up window proposal-window)
      (set-window-parameter panel-window 'mode-line-format 'none)
      (window-resize panel-window (- 1 (window-total-height panel-window))
                     nil t))))

(defun gemini-companion-windows-call-in-panel (panel edit function)
  "Call FUNCTION in the buffer PANEL of EDIT, with a window of PANEL selected.
The window may be on another frame; if there is none, make one.  Then restore
the windows, and point of the current buffer."
  (gemini-companion-windows-at-once
    (let ((window (get-buffer-window panel t)))
      (with-selected-frame (window-frame window)
        ;; A window configuration does not have point of the current buffer.
        (save-excursion
          (save-window-excursion
            (select-window
             (or window (gemini-companion-windows-make-for-ediff panel edit))
             'norecord)
            (with-current-buffer panel
              (funcall function))))))))

;;;; Other buffers

(defun gemini-companion-windows--for-other-buffer ()
  "Return a window of this frame for a buffer that must not hide a CLI.
Prefer a window of a review, which displays the review again after the buffer
is quit.  Otherwise, return the least recently used window that is not the
terminal of a CLI.  Return nil if there is no such window, or if the frame
displays neither a review nor a terminal."
  (let* ((windows (seq-remove #'window-dedicated-p
                              (gemini-companion-windows--main)))
         (terminals (mapcar #'gemini-companion-session-terminal
                            (gemini-companion-sessions)))
         (others (seq-remove (lambda (window)
                               (memq (window-buffer window) terminals))
                             windows))
         (review (seq-find (lambda (window)
                             (buffer-local-value 'gemini-companion-edit-here
                                                 (window-buffer window)))
                           others)))
    (cond (review)
          ((< (length others) (length windows))
           (car (seq-sort-by #'window-use-time #'< others))))))

(defun gemini-companion-windows-display-covering (buffer _alist)
  "Display BUFFER in a window that hides no CLI, if there is one.
The window is `gemini-companion-windows--for-other-buffer'.  This is an action
function of `display-buffer'."
  (when-let* ((window (gemini-companion-windows--for-other-buffer)))
    (display-buffer-record-window 'reuse window buffer)
    (set-window-buffer window buffer)
    window))

(defun gemini-companion-windows-display-instead (buffer alist)
  "Display BUFFER in place of another buffer of its kind, if there is one.
The function `instead-of' in ALIST returns non-nil for the window of that
buffer.  Quitting BUFFER then has the same effect as quitting the other buffer
would have had.  This is an action function of `display-buffer'."
  (when-let* ((window (seq-find
                       (lambda (window)
                         (and (funcall (alist-get 'instead-of alist) window)
                              (not (window-dedicated-p window))
                              (not (and (alist-get 'inhibit-same-window alist)
                                        (eq window (selected-window))))))
                       (window-list-1 nil 'no-minibuffer 'visible))))
    (let ((previous (window-buffer window)))
      (set-window-buffer window buffer)
      ;; A window with a previous buffer is not deleted by quitting it.
      (set-window-prev-buffers window (assq-delete-all
                                       previous (window-prev-buffers window)))
      (dolist (parameter gemini-companion-windows--quit-parameters)
        (pcase (window-parameter window parameter)
          (`(,how ,what ,selected ,(pred (eq previous)))
           (set-window-parameter window parameter
                                 (list how what selected buffer))))))
    window))

(defun gemini-companion-windows-show-beside (buffer display)
  "Show BUFFER by the function DISPLAY, but not in the selected window.
DISPLAY is `pop-to-buffer' or `display-buffer'.  Hide neither the terminal of a
CLI nor a review."
  (gemini-companion-windows-at-once
    (funcall display buffer
             (if (gemini-companion-windows--for-other-buffer)
                 '((display-buffer-reuse-window
                    display-buffer-below-selected)
                   (category . gemini-companion-file)
                   (inhibit-same-window . t))
               '(nil (category . gemini-companion-file)
                     (inhibit-same-window . t))))))

(defun gemini-companion-windows-uncover (buffers)
  "Quit the windows of this frame that cover BUFFERS, to display these again."
  ;; If this variable is non-nil, Emacs 31 would delete these windows.
  (let ((quit-restore-window-no-switch nil))
    (mapc #'quit-restore-window
          (gemini-companion-windows--covering (selected-frame) buffers))))

(defun gemini-companion-windows--covering (frame buffers)
  "Return the windows of FRAME in which another buffer covers one of BUFFERS.
Quitting such a window displays the covered buffer again."
  (cl-flet ((covers (window parameter)
              (pcase (window-parameter window parameter)
                (`(,_ (,buffer . ,_) ,_ ,shown . ,_)
                 (and (memq buffer buffers)
                      (eq shown (window-buffer window)))))))
    (seq-filter (lambda (window)
                  (seq-some (apply-partially #'covers window)
                            gemini-companion-windows--quit-parameters))
                (window-list frame 'no-minibuffer))))

;;;; Layout

(defun gemini-companion-windows--layout-now ()
  "Return the windows and point of the selected frame, to restore them later.
The value is a `gemini-companion-windows--layout'."
  (let ((window-persistent-parameters
         ;; Emacs saves only these parameters.  Without them, restored windows would
         ;; not be atomic, and quitting *Help* would not delete its window.
         `((window-atom . t)
           ,@(mapcar (lambda (parameter) (cons parameter t))
                     gemini-companion-windows--quit-parameters)
           ,@window-persistent-parameters)))
    (gemini-companion-windows--make-layout
     :frame (selected-frame)
     :configuration (current-window-configuration)
     :selected (selected-window)
     :point (set-marker (make-marker) (window-point) (window-buffer)))))

(defun gemini-companion-windows-try (function &optional keep)
  "Call FUNCTION to open a review, and return its value.
The argument of FUNCTION is the current layout of the frame, for
`gemini-companion-windows-restore-after-review'.  If FUNCTION signals an error,
restore the layout, and signal the error again.  If KEEP is non-nil, select the
selected window again at the end."
  (let ((layout (gemini-companion-windows--layout-now))
        (used (seq-sort-by #'window-use-time #'< (window-list))))
    (condition-case problem
        (prog1 (funcall function layout)
          (when keep
            (gemini-companion-windows--select-again
             (gemini-companion-windows--layout-selected layout) used)))
      ((error quit)
       (gemini-companion-windows--restore layout)
       (signal (car problem) (cdr problem))))))

(defun gemini-companion-windows--select-again (window used)
  "Select WINDOW, which was selected before a review was opened.
USED are the windows at that time, the last used one last; restore the order of
those that are still live."
  ;; By `display-buffer-alist', the review may be in a new tab.
  (unless (window-live-p window)
    (tab-bar-switch-to-recent-tab))
  (when (window-live-p window)
    (select-window window)
    ;; If WINDOW is deleted, Emacs selects the most recently used window.
    (mapc #'window-bump-use-time (seq-filter #'window-live-p used))))

(defun gemini-companion-windows--restore (layout)
  "Restore LAYOUT, except for the minibuffer.
In the windows of a terminal, point stays at the end of the output."
  (let ((frame (gemini-companion-windows--layout-frame layout))
        (selected (gemini-companion-windows--layout-selected layout))
        (point (gemini-companion-windows--layout-point layout))
        ;; `set-window-configuration' moves point of the selected buffer.
        (ends (mapcar (lambda (buffer)
                        (with-current-buffer buffer
                          (cons buffer (point))))
                      (seq-filter #'get-buffer-process (buffer-list)))))
    (set-window-configuration
     (gemini-companion-windows--layout-configuration layout)
     (not (eq frame (selected-frame))) t)
    (when (and (window-live-p selected)
               (eq (marker-buffer point) (window-buffer selected)))
      (set-window-point selected point))
    (dolist (window (window-list frame 'no-minibuffer))
      (when-let* ((end (alist-get (window-buffer window) ends)))
        (set-window-point window end)))))

;;;; Closing

(defun gemini-companion-windows-restore-after-review (layout buffers windows)
  "Restore LAYOUT after a review in BUFFERS and WINDOWS; quit these windows.
Close a tab that was made for the review, unless it has other windows."
  (let ((review-tab (pcase (window-parameter (car windows) 'quit-restore)
                      (`(tab tab ,_ ,buffer) (memq buffer buffers)))))
    (pcase (gemini-companion-windows--review-location
            layout buffers windows review-tab)
      ('other-tab
       (gemini-companion-windows--restore-in-tab layout buffers review-tab))
      ('review-tab
       ;; If this is its only window, quitting below closes the tab.
       (unless (frame-root-window-p (car windows))
         (delete-window (car windows))))
      ('frame
       (gemini-companion-windows--restore-around layout buffers))))
  (gemini-companion-windows--quit (seq-filter #'buffer-live-p buffers)))

(defun gemini-companion-windows--review-location
    (layout buffers windows review-tab)
  "Return where the review in BUFFERS and WINDOWS is now, a symbol or nil.
`other-tab': in a tab of the frame of LAYOUT that is not the current one.
`review-tab': in the current tab, which was made for it; REVIEW-TAB is
non-nil if a tab was made for it.  `frame': on the frame of LAYOUT, maybe
covered by another buffer.  nil: the frame is deleted or has no such window."
  (let ((frame (gemini-companion-windows--layout-frame layout)))
    (cond ((not (frame-live-p frame)) nil)
          ((and (frame-parameter frame 'tabs)
                (not (seq-some #'window-live-p windows)))
           'other-tab)
          ((and review-tab (window-live-p (car windows)))
           'review-tab)
          ((or (seq-some (lambda (buffer) (get-buffer-window buffer frame))
                         buffers)
               (gemini-companion-windows--covering frame buffers))
           'frame))))

(defun gemini-companion-windows--restore-in-tab (layout buffers review-tab)
  "Restore LAYOUT in the tab of BUFFERS, which is not the current one.
If REVIEW-TAB is non-nil, the tab was made for the review: close it, unless
the user has added other windows to it."
  (let ((frame (gemini-companion-windows--layout-frame layout)))
    (when-let* ((tab (seq-some
                      (lambda (buffer)
                        (tab-bar-get-buffer-tab buffer frame 'other))
                      buffers)))
      (cond
       ((not review-tab)
        (setf (alist-get 'wc tab)
              (gemini-companion-windows--layout-configuration layout)
              (alist-get 'wc-point tab) nil))
       ;; The state of a tab with one window is a leaf.
       ((eq 'leaf (cadr (alist-get 'ws tab)))
        (with-selected-frame frame
          (tab-bar-close-tab (1+ (alist-get 'index tab)))))))))

(defun gemini-companion-windows--quit (buffers)
  "Quit each window of BUFFERS, and delete a frame or tab made for it."
  (let ((frame-auto-hide-function #'delete-frame))
    ;; A window that quits must not display the next one of BUFFERS.
    (mapc #'bury-buffer buffers)
    (dolist (buffer buffers)
      (dolist (window (get-buffer-window-list buffer nil t))
        (if (eq window (selected-window))
            (quit-restore-window)
          ;; `quit-restore-window' may close the selected tab, and select another
          ;; window.
          (with-selected-window window
            (quit-restore-window)))))))

(defun gemini-companion-windows--restore-around (layout buffers)
  "Restore LAYOUT after a review in BUFFERS, around other buffers.
A window that displays another buffer keeps it, with its point, its margins,
the effect of quitting, and the selection: the user may have worked there
meanwhile.  If the selected window is not in LAYOUT, select a window of its
buffer."
  (let* ((frame (gemini-companion-windows--layout-frame layout))
         (last (frame-selected-window frame))
         (others (seq-remove (lambda (window)
                               (memq (window-buffer window) buffers))
                             (window-list frame)))
         (shown (mapcar #'gemini-companion-windows--shown-in others)))
    (gemini-companion-windows--restore layout)
    ;; The selected window is the first one in the list.  Its buffer comes last, as
    ;; it may have to replace the buffer of another window.
    (dolist (state (nreverse shown))
      (let* ((selected (eq last (gemini-companion-windows--shown-window state)))
             (window (gemini-companion-windows--window-for state frame selected)))
        (when window
          (gemini-companion-windows--show-again state window)
          (when selected
            (set-frame-selected-window (window-frame window) window t)))))))

(defun gemini-companion-windows--shown-in (window)
  "Return the present state of WINDOW, a `gemini-companion-windows--shown'."
  (gemini-companion-windows--make-shown
   :window window
   :buffer (window-buffer window)
   :edges (window-edges window)
   :start (window-start window)
   :point (window-point window)
   :quit (mapcar (lambda (parameter)
                   (cons parameter (window-parameter window parameter)))
                 gemini-companion-windows--quit-parameters)
   :margins (window-margins window)))

(defun gemini-companion-windows--window-for (shown frame selected)
  "Return a window with the buffer of SHOWN, after a layout was restored.
It is the window that displayed the buffer before.  If that is deleted, display
the buffer in another window of FRAME if SELECTED is non-nil, or return nil."
  (let ((window (gemini-companion-windows--shown-window shown))
        (buffer (gemini-companion-windows--shown-buffer shown))
        (pop-up-frames nil))
    (cond
     ((window-live-p window)
      (unless (eq buffer (window-buffer window))
        (pcase-dolist (`(,parameter . ,value)
                       (gemini-companion-windows--shown-quit shown))
          (set-window-parameter window parameter value))
        (set-window-buffer window buffer))
      window)
     (selected
      (with-selected-frame frame
        (display-buffer
         buffer '(gemini-companion-windows-display-covering
                  (inhibit-switch-frame . t))))))))

(defun gemini-companion-windows--show-again (shown window)
  "Set the margins, the start and point of WINDOW to those of SHOWN."
  (let ((start (gemini-companion-windows--shown-start shown))
        (margins (gemini-companion-windows--shown-margins shown)))
    (set-window-margins window (car margins) (cdr margins))
    ;; While the window was smaller, its start may have moved down.
    (when (or (equal (gemini-companion-windows--shown-edges shown)
                     (window-edges window))
              (< start (window-start window)))
      (set-window-start window start t))
    (set-window-point window (gemini-companion-windows--shown-point shown))))

(provide 'gemini-companion-windows)
;;; gemini-companion-windows.el ends here
