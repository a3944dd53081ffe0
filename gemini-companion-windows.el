;;; gemini-companion-windows.el --- Where a review is displayed  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The frame and the windows of a review: make a window that leaves the terminal
;; of the CLI and the selected window visible, record the layout before the
;; review, and restore it afterwards, also on another tab.  A window for other
;; buffers, such as the list, hides none of these.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-edit)
(require 'gemini-companion-session)
(require 'gemini-companion-windows-at-once)

(defvar gemini-companion-review-view)

;;;; Windows for a review

(defconst gemini-companion-windows--side-columns 80
  "Least width of each of two windows beside each other.")

(defconst gemini-companion-windows-ediff-columns
  (* 2 gemini-companion-windows--side-columns)
  "Least width of an Ediff session.")

(defconst gemini-companion-windows-ediff-lines 15
  "Least height of an Ediff session.  With less, a unified diff shows more.")

(defun gemini-companion-windows-make (buffer edit lines columns &optional keep)
  "Show BUFFER of EDIT in a window of the selected frame, and return it.
The terminal of its CLI stays visible if there is room beside it, else
the window gets the whole frame.  If KEEP is non-nil, the selected window
stays visible and selected in any case; return nil if there is no room.
LINES and COLUMNS are its least height and width."
  (let* ((ignore-window-parameters t)
         (window-min-height 1)
         (used (and keep
                    (or (minibuffer-selected-window)
                        (if (window-minibuffer-p)
                            (car (gemini-companion-windows--main))
                          (selected-window)))))
         (terminal (gemini-companion-windows-terminal edit))
         (beside (or (and terminal
                          (gemini-companion-windows--beside
                           (delete-dups (delq nil (list used terminal)))
                           lines columns))
                     (and used
                          (gemini-companion-windows--beside
                           (list used) lines columns))))
         (window (or beside
                     (unless used (car (gemini-companion-windows--main))))))
    (when window
      (set-window-dedicated-p window nil)
      (set-window-buffer window buffer)
      (unless beside
        (delete-other-windows window))
      window)))

(defun gemini-companion-windows--main ()
  "Return the windows of the selected frame, but for its side windows."
  (seq-remove (lambda (window) (window-parameter window 'window-side))
              (window-list nil 'no-minibuffer)))

(defun gemini-companion-windows-terminal (edit &optional frame)
  "Return the window of the terminal of EDIT's CLI on this frame, or on FRAME."
  (when-let* ((buffer (gemini-companion-session-terminal
                       (gemini-companion-edit-session edit))))
    (get-buffer-window buffer frame)))

(defun gemini-companion-windows--beside (kept lines columns)
  "Return a window beside the windows KEPT, or nil if there is no room.
It is the largest other one.  If that is too small, it takes the place
of all others, or else most of the first of KEPT.  See
`gemini-companion-windows-make' for LINES and COLUMNS."
  (let* ((others (seq-difference (gemini-companion-windows--main) kept #'eq))
         (largest (car (seq-sort-by (lambda (window)
                                      (* (window-total-width window)
                                         (window-total-height window)))
                                    #'> others)))
         (fits-p (lambda ()
                   (and largest
                        (<= columns (window-total-width largest))
                        (<= lines (window-total-height largest)))))
         ;; At these sides of a new window, the first one stays at its edge.
         (sides (list (if (< 0 (window-left-column (car kept))) 'left 'right)
                      (if (< (window-top-line (frame-root-window))
                             (window-top-line (car kept)))
                          'above
                        'below))))
    (unless (funcall fits-p)
      (gemini-companion-windows--delete (remq largest others) kept))
    (if (funcall fits-p)
        largest
      (gemini-companion-windows--delete (delq nil (list largest)) (cdr kept))
      (gemini-companion-windows--split (car kept) sides (null (cdr kept))
                                       lines columns))))

(defun gemini-companion-windows--delete (windows kept)
  "Delete WINDOWS; the windows KEPT keep their sizes, if possible."
  (let ((sizes (mapcar (lambda (window)
                         (list window (window-total-width window)
                               (window-total-height window)))
                       kept)))
    (mapc #'delete-window windows)
    (pcase-dolist (`(,window ,width ,height) sizes)
      (ignore-errors
        (window-resize window (- width (window-total-width window)) t t))
      (ignore-errors
        (window-resize window (- height (window-total-height window)) nil t)))))

(defun gemini-companion-windows--split (window sides narrow lines columns)
  "Return a new window at one of SIDES of WINDOW, or nil if there is no room.
If NARROW is non-nil, any width will do for one above or below.  See
`gemini-companion-windows-make' for LINES and COLUMNS."
  (let* ((width (window-total-width window))
         (height (window-total-height window))
         (most (/ (* 2 height) 3))
         ;; In a turn with both views, the other windows stay as they are.
         (columns (if (and (eq 'ediff gemini-companion-review-view)
                           (<= gemini-companion-windows-ediff-columns width)
                           (<= gemini-companion-windows-ediff-lines most))
                      gemini-companion-windows-ediff-columns
                    columns))
         (half (max columns gemini-companion-windows--side-columns
                    (/ width 2))))
    (cond ((and (<= (+ half gemini-companion-windows--side-columns) width)
                (<= lines height))
           (split-window window (- half) (car sides)))
          ((and (<= lines most)
                (or narrow (<= columns width)))
           (split-window window (- most) (cadr sides))))))

;;;; Other buffers

(defun gemini-companion-windows-for-list ()
  "Return a window of this frame for a buffer that must not hide a CLI.
Prefer a window of a review, which shows the review again when that
buffer is left.  Otherwise return the least recently used window that
is not the terminal of a CLI.  Return nil if there is no such window,
or neither a review nor a terminal."
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
  "Display BUFFER in `gemini-companion-windows-for-list', if there is one.
This is an action function of `display-buffer'."
  (when-let* ((window (gemini-companion-windows-for-list)))
    (display-buffer-record-window 'reuse window buffer)
    (set-window-buffer window buffer)
    window))

(defun gemini-companion-windows-covering (frame buffers)
  "Return the windows of FRAME in which another buffer covers one of BUFFERS.
They show that one again when the other buffer is quit."
  (seq-filter (lambda (window)
                (pcase (window-parameter window 'quit-restore)
                  (`(,_ (,buffer . ,_) ,_ ,shown . ,_)
                   (and (memq buffer buffers)
                        (eq shown (window-buffer window))))))
              (window-list frame 'no-minibuffer)))

;;;; Layout

(cl-defstruct (gemini-companion-windows--layout
               (:constructor gemini-companion-windows--make-layout)
               (:copier nil))
  "The windows of a frame before a review.
FRAME has them, CONFIGURATION is the value of `current-window-configuration',
and SELECTED the selected window, with the marker POINT at its point.  A
configuration does not keep that point if other windows show its buffer."
  frame configuration selected point)

(cl-defstruct (gemini-companion-windows--shown
               (:constructor gemini-companion-windows--make-shown)
               (:copier nil))
  "What a window shows that the user may have changed during a review.
QUIT is its parameter `quit-restore'; the other slots are what the
functions of these names return."
  window buffer edges start point quit margins)

(defun gemini-companion-windows--layout-now ()
  "Return the layout of the selected frame."
  (let ((window-persistent-parameters
         ;; Without these, it would not be atomic, or quitting *Help* not
         ;; delete it.
         `((window-atom . t) (quit-restore . t)
           ,@window-persistent-parameters)))
    (gemini-companion-windows--make-layout
     :frame (selected-frame)
     :configuration (current-window-configuration)
     :selected (selected-window)
     :point (set-marker (make-marker) (window-point) (window-buffer)))))

(defun gemini-companion-windows-try (function)
  "Call FUNCTION with the layout of the frame, which is restored if that fails.
The layout is for `gemini-companion-windows-restore-after-review'."
  (let ((layout (gemini-companion-windows--layout-now)))
    (condition-case problem
        (funcall function layout)
      ((error quit)
       (gemini-companion-windows--restore layout)
       (signal (car problem) (cdr problem))))))

(defun gemini-companion-windows--restore (layout)
  "Restore LAYOUT, but no prompt.  Windows of a terminal follow its output."
  (let ((frame (gemini-companion-windows--layout-frame layout))
        (selected (gemini-companion-windows--layout-selected layout))
        (point (gemini-companion-windows--layout-point layout))
        ;; A configuration moves point of its selected buffer.
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
  "Restore LAYOUT from a review in BUFFERS, which was in WINDOWS.
If the user has moved to another tab, the tab of the review gets LAYOUT,
but one that was made for it is closed, unless it has other windows.
Elsewhere, delete only the windows of BUFFERS."
  (let* ((frame (gemini-companion-windows--layout-frame layout))
         (window (car windows))
         (own-tab (pcase (window-parameter window 'quit-restore)
                    (`(tab tab ,_ ,shown) (memq shown buffers)))))
    (cond
     ((not (frame-live-p frame)))
     ((and (frame-parameter frame 'tabs)
           (not (seq-some #'window-live-p windows)))
      (gemini-companion-windows--restore-in-tab layout buffers own-tab))
     ((and own-tab (window-live-p window))
      ;; The window is closed below, unless the user has split it.
      (unless (frame-root-window-p window)
        (delete-window window)))
     ((or (seq-some (lambda (buffer) (get-buffer-window buffer frame))
                    buffers)
          (gemini-companion-windows-covering frame buffers))
      (gemini-companion-windows--restore-around layout buffers))))
  (gemini-companion-windows--quit (seq-filter #'buffer-live-p buffers)))

(defun gemini-companion-windows--restore-in-tab (layout buffers own-tab)
  "Restore LAYOUT in the tab of BUFFERS, which is not the current one.
If OWN-TAB is non-nil, the tab was made for the review: close it, unless
the user has added other windows to it."
  (let ((frame (gemini-companion-windows--layout-frame layout)))
    (when-let* ((tab (seq-some
                      (lambda (buffer)
                        (tab-bar-get-buffer-tab buffer frame 'other))
                      buffers)))
      (cond
       ((not own-tab)
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
    ;; A window that quits would show the next one of these buffers.
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
  "Restore LAYOUT from a review in BUFFERS.
A window that shows another buffer keeps it, its point, its margins, what
quitting does and the selection: the user may have worked there meanwhile.
If the user is in a window that LAYOUT does not have, its buffer stays
selected, too."
  (let* ((frame (gemini-companion-windows--layout-frame layout))
         (last (frame-selected-window frame))
         (others (seq-remove (lambda (window)
                               (memq (window-buffer window) buffers))
                             (window-list frame)))
         (shown (mapcar #'gemini-companion-windows--shown-in others)))
    (gemini-companion-windows--restore layout)
    ;; The selected window is the first one of the list.  Its buffer comes last,
    ;; as it may have to take another one's place.
    (dolist (one (nreverse shown))
      (let* ((selected (eq last (gemini-companion-windows--shown-window one)))
             (window (gemini-companion-windows--window-for one frame selected)))
        (when window
          (gemini-companion-windows--show-again one window)
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
   :quit (window-parameter window 'quit-restore)
   :margins (window-margins window)))

(defun gemini-companion-windows--window-for (shown frame selected)
  "Return a window with the buffer of SHOWN, after a layout was restored.
That is the window that had it.  If that is gone, it is one of FRAME that
is covered, if SELECTED is non-nil, or else nil."
  (let ((window (gemini-companion-windows--shown-window shown))
        (buffer (gemini-companion-windows--shown-buffer shown))
        (pop-up-frames nil))
    (cond
     ((window-live-p window)
      (unless (eq buffer (window-buffer window))
        (set-window-parameter window 'quit-restore
                              (gemini-companion-windows--shown-quit shown))
        (set-window-buffer window buffer))
      window)
     (selected
      (with-selected-frame frame
        (display-buffer
         buffer '(gemini-companion-windows-display-covering
                  (inhibit-switch-frame . t))))))))

(defun gemini-companion-windows--show-again (shown window)
  "Give WINDOW the margins, the beginning and point of SHOWN."
  (let ((start (gemini-companion-windows--shown-start shown))
        (margins (gemini-companion-windows--shown-margins shown)))
    (set-window-margins window (car margins) (cdr margins))
    ;; A smaller window had to scroll down.
    (when (or (equal (gemini-companion-windows--shown-edges shown)
                     (window-edges window))
              (< start (window-start window)))
      (set-window-start window start t))
    (set-window-point window (gemini-companion-windows--shown-point shown))))

(provide 'gemini-companion-windows)
;;; gemini-companion-windows.el ends here
