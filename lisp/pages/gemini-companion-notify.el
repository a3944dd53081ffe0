;;; gemini-companion-notify.el --- Show what each CLI is doing  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The mode line shows the states of the CLIs.  If a CLI begins to wait or ends a long
;; turn while the user looks at something else, a notification reports it.  A state is
;; reported once it has lasted for half a second.

;;; Code:

(require 'gemini-companion-changes)
(require 'gemini-companion-edit)
(require 'gemini-companion-idle)
(require 'gemini-companion-label)
(require 'gemini-companion-log)
(require 'gemini-companion-part)
(require 'gemini-companion-request)
(require 'gemini-companion-session)
(require 'gemini-companion-state)
(require 'gemini-companion-terminal)
(require 'gemini-companion-turn)

(autoload 'gemini-companion-overview-draw-turn "gemini-companion-overview-draw")

(declare-function notifications-close-notification "notifications")
(declare-function notifications-notify "notifications")

;;;; Customization

(defcustom gemini-companion-notify 'message
  "Way to notify that a CLI waits for an answer, or has ended a long turn.
`message' shows a line in the echo area.  `desktop' shows a notification
of the desktop by D-Bus, or a line in the echo area if that fails.
A function is called with the session and a text; if it returns a
function, that is called to withdraw the notification.  Nil means not to
notify.

There is no notification while the terminal or the review of the CLI is
displayed in a frame with focus, or if the turn took less than ten
seconds.  Takes effect at once."
  :type '(choice (const :tag "Line in the echo area" message)
                 (const :tag "Desktop notification, by D-Bus" desktop)
                 (const :tag "None" nil)
                 (function :tag "Function"))
  :package-version '(gemini-companion . "0.1.0")
  :group 'gemini-companion)

;;;; State

(defvar gemini-companion-notify-lasting-seconds 0.5
  "Seconds for which a state must last to be shown.")

(defvar gemini-companion-notify-turn-seconds 10
  "Seconds that a turn must last for a notification of its end.")

(defvar gemini-companion-notify-service-seconds 1
  "Seconds that a service of the desktop may block Emacs.")

(defvar gemini-companion-notify--open nil
  "Alist of sessions and functions that withdraw their notifications.")

(defun gemini-companion-notify--follow (session _state)
  "Withdraw the notification about SESSION, and show its new state soon."
  (gemini-companion-notify--withdraw session)
  (when-let* ((since (gemini-companion-session-state-since session)))
    (run-at-time (* gemini-companion-notify-lasting-seconds
                    ;; What was accepted may still be written, or nobody has to be
                    ;; asked: a title shows a question for two seconds.
                    (if (seq-some #'gemini-companion-state-question-p
                                  (gemini-companion-requests session))
                        4
                      1))
                 nil #'gemini-companion-notify--report-state session since)))

(defun gemini-companion-notify--report-state (session since)
  "Show the state of SESSION if it is the one of SINCE, and maybe notify."
  (gemini-companion-log-guarded 'notify
    (when (eql since (gemini-companion-session-state-since session))
      (let* ((state (gemini-companion-state-lasts session))
             (request (car (gemini-companion-requests-certain session)))
             (text (pcase state
                     ('waiting (and request
                                    (gemini-companion-request-notice request)))
                     ('ready (gemini-companion-notify--summary session)))))
        (gemini-companion-part-update-lighter)
        (gemini-companion-notify--send-unseen session text)))))

(defun gemini-companion-notify--follow-request (request event)
  "Notify of REQUEST soon after it is opened, and withdraw that once it is closed.
Do nothing if the state of its CLI shows REQUEST.  EVENT is as in
`gemini-companion-request-functions'."
  (unless (gemini-companion-notify--in-state-p request)
    (pcase event
      ('opened (run-at-time gemini-companion-notify-lasting-seconds nil
                            #'gemini-companion-notify--report-request request))
      ('closed (gemini-companion-notify--withdraw
                (gemini-companion-request-session request))))))

(defun gemini-companion-notify--in-state-p (request)
  "Return non-nil if REQUEST has an effect on the state of its CLI."
  (or (gemini-companion-state-question-p request)
      (and (gemini-companion-request-certain-p request)
           (gemini-companion-session-connected-p
            (gemini-companion-request-session request)))))

(defun gemini-companion-notify--report-request (request)
  "Notify of REQUEST if it is still open."
  (gemini-companion-log-guarded 'notify
    (let ((session (gemini-companion-request-session request)))
      (when (memq request (gemini-companion-requests session))
        (gemini-companion-notify--send-unseen
         session (gemini-companion-request-notice request))))))

;;;; Display

(defun gemini-companion-notify-description (session)
  "Return what SESSION is doing and since when, or nil if that is unknown.
A state that has just begun may end at once, as for an auto-accepted edit."
  (let ((state (gemini-companion-session-state session 'lasting)))
    (unless (eq state 'unknown)
      (format-time-string (format "%s since %%H:%%M" state)
                          (gemini-companion-session-state-since session 'lasting)))))

(cl-defmethod gemini-companion-part-lighter ((_part (eql 'notify)))
  "Return the number of requests and \"working\", as text for the mode line."
  (let ((count (length (gemini-companion-requests-certain))))
    (cons (concat (unless (zerop count) (format "?%d " count))
                  (when (seq-some (lambda (session)
                                    (eq 'working (gemini-companion-session-state
                                                  session 'lasting)))
                                  (gemini-companion-sessions))
                    "working "))
          #'gemini-companion-notify--help)))

(defun gemini-companion-notify--header ()
  "Return the header line of the terminal of a CLI.
It has the number of its requests that await an answer elsewhere, and the key
that goes there, and the number of prompts that are queued; or how to connect
the CLI."
  (gemini-companion-label-header
   (list
    (if-let* ((session (gemini-companion-session-of-terminal (current-buffer))))
        ;; In a narrow window, a part of both is better than none of the second one.
        (string-join
         (delq nil
               (list (gemini-companion-notify--waiting
                      (seq-filter (lambda (request)
                                    (and (eq (current-buffer)
                                             (gemini-companion-session-terminal
                                              (gemini-companion-request-session
                                               request)))
                                         ;; The key would lead to this terminal.
                                         (not (eq (current-buffer)
                                                  (gemini-companion-request-buffer
                                                   request)))))
                                  (gemini-companion-requests-certain)))
                     (gemini-companion-notify--queued session)))
         "  ")
      gemini-companion-terminal-hint))))

(defun gemini-companion-notify--queued (session)
  "Return a text about the prompts that are queued for SESSION, or nil.
It names the key of the buffer in which they can be withdrawn."
  (when-let* ((count (funcall gemini-companion-state-pending-function session)))
    (format (ngettext "%d prompt queued: %s" "%d prompts queued: %s" count) count
            (substitute-command-keys "\\[gemini-companion-compose]"))))

(defun gemini-companion-notify--waiting (requests)
  "Return a text about the number of REQUESTS, or nil if there are none.
It names the key that goes there."
  (when requests
    (format "%d to answer: %s" (length requests)
            (substitute-command-keys "\\[gemini-companion-review]"))))

(defun gemini-companion-notify--help ()
  "Return the help of the mode line: a line for each CLI, or nil."
  (let ((lines (mapcar (lambda (session)
                         (concat (gemini-companion-session-name session) ": "
                                 (or (gemini-companion-notify-description session)
                                     "connected")))
                       (gemini-companion-sessions)))
        (waiting (gemini-companion-notify--waiting
                  (gemini-companion-requests-certain))))
    (when waiting
      (push waiting lines))
    (when lines
      (string-join lines "\n"))))

;;;; Notifications

(defun gemini-companion-notify--seen-p (session)
  "Return non-nil if the user sees what waits for an answer to SESSION.
Without such a request, the terminal of SESSION must be seen.  It is in a
window of a frame with focus."
  (let ((requests (gemini-companion-requests session))
        (terminal (gemini-companion-session-terminal session)))
    (seq-some
     (lambda (window)
       (let ((buffer (window-buffer window))
             (frame (window-frame window)))
         (and (pcase (frame-focus-state frame)
                ;; A text terminal may not report it.
                ('unknown (eq frame (selected-frame)))
                (focus focus))
              (if requests
                  (seq-some (lambda (request)
                              (gemini-companion-request-shown-in-p request buffer))
                            requests)
                (eq buffer terminal)))))
     (seq-mapcat (lambda (frame) (window-list frame 'never)) (frame-list)))))

(cl-defmethod gemini-companion-request-notice ((edit gemini-companion-edit))
  "Return that the CLI proposes EDIT, or nil.
The echo area shows the arrival of a review anyway."
  (unless (eq gemini-companion-notify 'message)
    (format "%s %s" (gemini-companion-session-name
                     (gemini-companion-edit-session edit))
            (gemini-companion-request-label edit))))

(defun gemini-companion-notify--summary (session)
  "Return that the turn of SESSION is done, and what it has written, or nil.
It is nil for a turn that was short, or while something waits."
  (when-let* (((not (funcall gemini-companion-state-pending-function session)))
              (turn (gemini-companion-session-turn session))
              (ended (gemini-companion-turn-ended turn))
              ((<= gemini-companion-notify-turn-seconds
                   (- ended (gemini-companion-turn-began turn)))))
    (let ((texts (gemini-companion-overview-draw-turn session turn)))
      (concat (gemini-companion-session-name session) " is done"
              (and texts ": ") (string-join texts ", ")
              (and texts
                   (gemini-companion-changes-left)
                   (substitute-command-keys
                    "; \\[gemini-companion-next-change]"))))))

(defun gemini-companion-notify--send-unseen (session text)
  "Notify the user of TEXT about SESSION, unless it is nil or they see that.
The notice is withdrawn when the state of SESSION changes."
  (when (and text (not (gemini-companion-notify--seen-p session)))
    (let ((withdraw (gemini-companion-notify--show session text)))
      (when (functionp withdraw)
        (push (cons session withdraw) gemini-companion-notify--open)))))

(defun gemini-companion-notify-warn (session text)
  "Tell the user TEXT about SESSION in the echo area.
If they see nothing of SESSION, send a notification, which stays."
  (if (or (null gemini-companion-notify)
          (gemini-companion-notify--seen-p session))
      (gemini-companion-idle-announce text)
    (gemini-companion-notify--show session text)))

(defun gemini-companion-notify--show (session text)
  "Show TEXT, a notice about SESSION; see `gemini-companion-notify'.
Return a function that withdraws the notice, or another value if there is none."
  (let ((text (substring-no-properties text)))
    (pcase gemini-companion-notify
      ('nil nil)
      ((or 'message 'desktop)
       (or (and (eq gemini-companion-notify 'desktop)
                (gemini-companion-notify--dbus session text))
           (gemini-companion-idle-announce text)))
      (function (funcall function session text)))))

(defun gemini-companion-notify--withdraw (session)
  (when-let* ((open (assoc session gemini-companion-notify--open
                           #'gemini-companion-session-same-p)))
    (setq gemini-companion-notify--open
          (remq open gemini-companion-notify--open))
    (funcall (cdr open))))

(defun gemini-companion-notify--go (session)
  "Show what waits for an answer to SESSION, or else its terminal.
This is called by a click on a notification."
  (let ((request (car (gemini-companion-requests session)))
        (terminal (gemini-companion-session-terminal session)))
    (select-frame-set-input-focus (selected-frame))
    (cond (request (gemini-companion-request-show request))
          (terminal (gemini-companion-terminal-show terminal)))))

;;;; D-Bus

(defun gemini-companion-notify--dbus (session text)
  "Show TEXT about SESSION by D-Bus, if a service is there or can be started.
Return a function that withdraws it, or nil."
  (when-let* (((featurep 'dbusbind))
              ((require 'notifications nil t))
              (id (gemini-companion-notify--call
                   #'notifications-notify
                   :title text :actions '("default" "Show")
                   :on-action (lambda (&rest _)
                                (gemini-companion-notify--go session)))))
    (lambda ()
      (gemini-companion-notify--call
       #'notifications-close-notification id))))

(defun gemini-companion-notify--call (function &rest args)
  "Return the value of calling FUNCTION with ARGS, or nil if that fails.
A service that hangs would block Emacs for 25 seconds."
  ;; The functions of D-Bus show their errors in the echo area.
  (let ((inhibit-message t)
        (message-log-max nil))
    (with-timeout (gemini-companion-notify-service-seconds)
      (ignore-errors (apply function args)))))

;;;; Life

(cl-defmethod gemini-companion-part-start ((_part (eql 'notify)))
  "Make the header lines of terminals."
  (setq gemini-companion-terminal-header-function #'gemini-companion-notify--header))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'notify)))
  "Show the states and the requests of the CLIs."
  '((gemini-companion-state-functions gemini-companion-notify--follow)
    (gemini-companion-request-functions gemini-companion-notify--follow-request)))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'notify)))
  "Stop showing the states, and withdraw all notifications."
  (cancel-function-timers #'gemini-companion-notify--report-state)
  (cancel-function-timers #'gemini-companion-notify--report-request)
  (mapc #'gemini-companion-notify--withdraw
        (mapcar #'car gemini-companion-notify--open)))

(provide 'gemini-companion-notify)
;;; gemini-companion-notify.el ends here
