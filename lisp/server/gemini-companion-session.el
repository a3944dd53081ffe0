;;; gemini-companion-session.el --- The connected CLIs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A session is a connected CLI.  This file has the list of sessions, their names for
;; the user, and the terminal of each in this Emacs.  The server describes a session by
;; a plist, which `gemini-companion-session-from-facts' checks.

;;; Code:

(require 'cl-lib)
(require 'gemini-companion-cache)
(require 'gemini-companion-choice)
(require 'gemini-companion-clients)
(require 'gemini-companion-commands)
(require 'gemini-companion-names)
(require 'gemini-companion-part)
(require 'gemini-companion-text)

;;;; State

;; The types are those of the facts from the server.
(cl-defstruct (gemini-companion-session
               (:noinline t)
               (:constructor gemini-companion-session-make)
               (:copier nil))
  "A connected CLI.  It never changes; a CLI that reconnects has a new session.
A slot is nil if its value is unknown.  REMOTE is nil for this host."
  (id nil :type (or null string) :read-only t
      :documentation "Unique on its host, or nil for a CLI that is to be started.")
  (client nil :type (or null string) :read-only t
          :documentation "A member of `gemini-companion-clients'.")
  (version nil :type (or null string) :read-only t
           :documentation "The version of the CLI.")
  (remote nil :type (or null string) :read-only t
          :documentation "The host on which the CLI runs, such as \"/ssh:host:\".")
  (pid nil :type (or null integer) :read-only t :documentation "The ID of its process.")
  (identity nil :type (or null number) :read-only t
            :documentation "Distinguishes its process from a later one with that ID.")
  (directory nil :type (or null string) :read-only t
             :documentation "The working directory of its process."))

(defvar gemini-companion-session--all nil
  "The sessions that the server has reported.")

(defvar-local gemini-companion-session-remote-directory nil
  "Remote directory of the CLI that was started in this buffer, or nil.
The terminal itself is a local process.")
;; Modes of terminals kill other local variables.
(put 'gemini-companion-session-remote-directory 'permanent-local t)

(defvar gemini-companion-session-changed-functions nil
  "Functions called after CLIs have connected or disconnected.
Each is called with the previous value of `gemini-companion-sessions'.")

;;;; Sessions

(defun gemini-companion-session--slots ()
  "Return the slots of a session, a list of (NAME KEYWORD TYPE)."
  (mapcar (pcase-lambda (`(,name ,_ . ,options))
            (list name (intern (format ":%s" name)) (plist-get options :type)))
          (cdr (cl-struct-slot-info 'gemini-companion-session))))

(defun gemini-companion-session-from-facts (facts)
  "Return the session that the server describes by FACTS.
FACTS is a plist, whose keys are the names of slots; other keys are ignored.
Signal an error if there is no ID, or if a value is of another type."
  (unless (plist-get facts :id)
    (error "Session without an ID: %S" facts))
  (apply #'gemini-companion-session-make
         (cl-loop for (_ key type) in (gemini-companion-session--slots)
                  for value = (plist-get facts key)
                  unless (cl-typep value type)
                  do (error "Session with %s %S" key value)
                  append (list key value))))

(defun gemini-companion-session-facts (session)
  "Return the facts of SESSION that are known, a plist to be sent or saved.
`gemini-companion-session-from-facts' returns SESSION for them."
  (cl-loop for (name key _) in (gemini-companion-session--slots)
           for accessor = (intern (format "gemini-companion-session-%s" name))
           for value = (funcall accessor session)
           when value append (list key value)))

(defun gemini-companion-session-unconnected (client &optional pid directory)
  "Return a session for CLIENT, which is linked but not connected.
PID is its process, and DIRECTORY that of the process, or nil."
  (gemini-companion-session-make
   :id (if pid (format "linked-%s" pid) (concat "?" client))
   :client client :pid pid :directory directory))

(defun gemini-companion-session--linked-p (session)
  "Return non-nil if the CLI of SESSION is linked but not connected."
  (string-match-p "\\`\\(?:linked-\\|\\?\\)" (or (gemini-companion-session-id session) "")))

(defun gemini-companion-session-of-processes (pids)
  "Return the session of the connected CLI whose process is one of PIDS, or nil."
  (seq-find (lambda (session) (memql (gemini-companion-session-pid session) pids))
            (gemini-companion-sessions)))

(defun gemini-companion-sessions ()
  "Return the sessions of the connected CLIs.
A CLI that reconnects may have its old session as well; the value has one
session of each CLI."
  (seq-uniq gemini-companion-session--all #'gemini-companion-session-same-p))

(cl-defmethod gemini-companion-commands-value ((_name (eql 'connected)))
  "Return the connected CLIs."
  (gemini-companion-sessions))

(defun gemini-companion-session-connected-p (session)
  "Return non-nil if SESSION is connected."
  (cl-member session gemini-companion-session--all
             :test #'gemini-companion-session--equal-p))

(defun gemini-companion-session--equal-p (a b)
  "Return non-nil if A and B are one session, with the same ID and host.
Neither is if it is nil."
  (and a b
       (equal (gemini-companion-session-id a) (gemini-companion-session-id b))
       (equal (gemini-companion-session-remote a) (gemini-companion-session-remote b))))

(defun gemini-companion-session-same-p (a b)
  "Return non-nil if A and B are sessions of the same CLI.
Only sessions on this host are compared by process: a remote host could report
any process ID."
  (or (gemini-companion-session--equal-p a b)
      (and a b
           (not (gemini-companion-session-remote a))
           (not (gemini-companion-session-remote b))
           (gemini-companion-session-pid a)
           (eql (gemini-companion-session-pid a) (gemini-companion-session-pid b))
           (eql (gemini-companion-session-identity a) (gemini-companion-session-identity b)))))

(defun gemini-companion-session-next-p (session other)
  "Return non-nil if SESSION receives what waits for OTHER.
Both are of the same CLI; or the CLI of OTHER has exited, and the CLI of SESSION
is of the same kind, in the same directory."
  (or (gemini-companion-session-same-p session other)
      (and (not (gemini-companion-session-connected-p other))
           (seq-every-p (lambda (slot)
                          (equal (funcall slot session) (funcall slot other)))
                        '(gemini-companion-session-client
                          gemini-companion-session-directory
                          gemini-companion-session-remote)))))

;;;; What a CLI is doing

(cl-defgeneric gemini-companion-session-state (_session &optional _lasting)
  "Return the state of a session.
It is `ready' for a prompt; `working'; `waiting' for an answer of the user, in
its terminal or in a review; or `unknown', as always before the file `state' is
loaded.  If the second argument is non-nil, return the last state that has
lasted for a while."
  'unknown)

;;;; Names

(defun gemini-companion-session-title (session)
  "Return the name of the program of SESSION, such as \"Gemini CLI\"."
  (gemini-companion-client-title (gemini-companion-session-client session)))

(defun gemini-companion-session-directory-name (directory remote)
  "Return the base name of DIRECTORY, or else the title of the host REMOTE.
Return nil if both are nil."
  (cond (directory
         (gemini-companion-names-shown
          (file-name-nondirectory (directory-file-name directory)) 30))
        (remote (gemini-companion-names-title remote))))

(defun gemini-companion-session-name (session)
  "Return the name of SESSION for the user, such as \"Qwen Code (shop)\".
If the directory and the host are unknown, or if another connected CLI has the
same name, it includes the process, as in \"Qwen Code (shop, process 12)\", or
the beginning of the ID of SESSION if the process is unknown.  After the CLI has
disconnected, as in another Emacs, the process says nothing to the user."
  (pcase-let (((cl-struct gemini-companion-session id pid directory remote) session))
    (let* ((directory-name (gemini-companion-session-directory-name directory remote))
           (process (when (or (null directory-name)
                              (and (or (gemini-companion-session-connected-p session)
                                       (gemini-companion-session--linked-p session))
                                   (gemini-companion-session--namesake-p session)))
                      (cond (pid (format "process %d" pid))
                            (id (format "session %.8s" id))))))
      (format "%s (%s)" (gemini-companion-session-title session)
              (string-join (delq nil (list directory-name process)) ", ")))))

(defun gemini-companion-session--namesake-p (session)
  "Return non-nil if another CLI has the title and the directory of SESSION.
Only the base name of the directory counts."
  (let ((name-of (lambda (session)
                   (pcase-let (((cl-struct gemini-companion-session directory remote)
                                session))
                     (list (gemini-companion-session-title session)
                           (gemini-companion-session-directory-name
                            directory remote))))))
    (seq-some (lambda (other)
                (and (not (gemini-companion-session-same-p session other))
                     (equal (funcall name-of session) (funcall name-of other))))
              (gemini-companion-sessions))))

(defun gemini-companion-session-reconnect (condition)
  "Return how to reconnect the CLIs that are connected now, or nil.
The value is a phrase, such as: run /ide enable in Gemini CLI CONDITION.
CLIs that reconnect by themselves are omitted."
  (let* ((clients (seq-uniq (mapcar #'gemini-companion-session-client
                                    (gemini-companion-sessions))))
         (groups (seq-group-by (lambda (client)
                                 (gemini-companion-client-reconnect-command client))
                               clients))
         (phrases (cl-loop for (command . clients) in groups
                           when command
                           collect (format "run %s in %s" command
                                           (gemini-companion-clients-titles
                                            clients)))))
    (when phrases
      (concat (string-join phrases ", ") " " condition))))

(defun gemini-companion-session-read (sessions)
  "Return the CLI whose terminal is current, or read one of SESSIONS.
If there is only one of them, return it.  The default is the first one in a
terminal of this Emacs.  Signal a `user-error' if SESSIONS is nil, or if the
CLI whose terminal is current is not connected."
  (cond
   ((gemini-companion-session-of-terminal (current-buffer)))
   ;; Another CLI is not the one that the user means.
   ((gemini-companion-session--unconnected-terminal-p)
    (user-error "The CLI in this terminal is not connected%s"
                (or (gemini-companion-commands-hint 'gemini-companion-status
                                                    "; %s shows why")
                    "")))
   ((cdr sessions)
    (gemini-companion-choice-read
     "CLI" (mapcar (lambda (session)
                     (cons (gemini-companion-session-name session) session))
                   (seq-sort-by #'gemini-companion-session-terminal
                                (lambda (a b) (and a (not b)))
                                sessions))
     'gemini-companion-session #'gemini-companion-session--annotation))
   ((car sessions))
   (t (user-error "No CLI is connected; %s%s"
                  (or (gemini-companion-commands-hint 'gemini-companion-run
                                                      "%s starts a CLI")
                      (concat "a CLI connects by "
                              (gemini-companion-clients-search)))
                  (or (gemini-companion-commands-hint
                       'gemini-companion-status
                       ", and %s shows how a running one connects")
                      "")))))

(defun gemini-companion-session--annotation (session)
  "Return the state and the directory of SESSION, if known, as a text."
  (let ((directory (gemini-companion-session-directory session))
        (state (gemini-companion-session-state session)))
    (string-join
     (delq nil (list (and (not (eq state 'unknown)) (symbol-name state))
                     (and directory
                          (not (gemini-companion-session-remote session))
                          (gemini-companion-names-shown
                           (gemini-companion-names-absolute directory)))))
     ", ")))

;;;; Files

(defun gemini-companion-session-name-of-file (file session)
  "Return the name by which the CLI of SESSION knows FILE.
It is relative to the directory of the CLI if that is known.  If SESSION is
nil, as no CLI is known, return FILE."
  (pcase-let (((or 'nil (cl-struct gemini-companion-session directory remote))
               session))
    (cond (directory (file-relative-name file directory))
          ((and remote (cdr (gemini-companion-names-remote file remote))))
          (t file))))

;;;; Terminals

(defun gemini-companion-session-terminal (session)
  "Return the terminal buffer of SESSION in this Emacs, or nil.
SESSION may be nil.  For a CLI on a remote host, return nil if there are several
terminals of that host, or several CLIs on it."
  (when session
    (if-let* ((remote (gemini-companion-session-remote session)))
        (gemini-companion-session--remote-terminal remote)
      (let* ((pid (gemini-companion-session-pid session))
             ;; Header lines call this; a look-up takes 0.1 ms per process.
             (buffer (gemini-companion-cache-get
                      (list 'terminal (gemini-companion-session-id session) pid)
                      (apply-partially #'gemini-companion-session--ancestor pid))))
        ;; After the CLI has exited, a shell may have the terminal.
        (and (buffer-live-p buffer) (eql 0 (signal-process pid 0)) buffer)))))

(defun gemini-companion-session-of-terminal (buffer)
  "Return the session of the CLI whose terminal is BUFFER, or nil."
  (cl-find buffer (gemini-companion-sessions)
           :key #'gemini-companion-session-terminal))

(defun gemini-companion-session--unconnected-terminal-p ()
  "Return non-nil if the current buffer is the terminal of a CLI without a session.
Of a remote terminal, it may be unknown which session it has."
  (when-let* (((not gemini-companion-session-remote-directory))
              (process (get-buffer-process (current-buffer))))
    (process-get process 'gemini-companion-started)))

(defun gemini-companion-session--remote-terminal (remote)
  "Return the only terminal buffer of the host REMOTE, or nil.
If there are several terminals, or several CLIs run on REMOTE, Emacs cannot
know which terminal belongs to which CLI."
  (let ((sessions (seq-filter (lambda (session)
                                (equal remote (gemini-companion-session-remote session)))
                              (gemini-companion-sessions)))
        (buffers (seq-filter
                  (lambda (buffer)
                    (let ((directory (buffer-local-value
                                      'gemini-companion-session-remote-directory
                                      buffer)))
                      (and directory
                           (string-prefix-p remote directory)
                           (process-live-p (get-buffer-process buffer)))))
                  (buffer-list))))
    (unless (or (cdr sessions) (cdr buffers))
      (car buffers))))

(defun gemini-companion-session--ancestor (pid)
  "Return the terminal buffer of the process PID or of an ancestor, or nil."
  (let ((buffers (mapcar (lambda (process)
                           (cons (process-id process) (process-buffer process)))
                         (seq-filter #'process-tty-name (process-list))))
        buffer)
    ;; In macOS, process 0 is its own parent.
    (while (and buffers pid (< 0 pid) (not (buffer-live-p buffer)))
      (setq buffer (alist-get pid buffers)
            pid (alist-get 'ppid (gemini-companion-text-process-attributes pid))))
    buffer))

(defun gemini-companion-session-has-terminal-p (process &optional session)
  "Return non-nil if SESSION, or any CLI, controls the terminal of PROCESS.
Otherwise, a shell or another program controls it.  A terminal that Emacs has
started for a CLI is always controlled by that CLI."
  (or (process-get process 'gemini-companion-started)
      (seq-some
       (lambda (session)
         (and (eq (process-buffer process)
                  (gemini-companion-session-terminal session))
              ;; The process is in the foreground process group.
              (when-let* ((attributes (gemini-companion-text-process-attributes
                                       (gemini-companion-session-pid session))))
                (let-alist attributes
                  (eql .pgrp .tpgid)))))
       (if session (list session) (gemini-companion-sessions)))))

;;;; Life

(cl-defmethod gemini-companion-server-receive
  ((_method (eql 'sessions-update)) sessions)
  "Set the connected CLIs to SESSIONS, a list of facts."
  (let ((previous (gemini-companion-sessions)))
    (setq gemini-companion-session--all
          (mapcar #'gemini-companion-session-from-facts sessions))
    (run-hook-with-args 'gemini-companion-session-changed-functions previous)
    (gemini-companion-part-update-lighter)
    t))

(cl-defmethod gemini-companion-part-stop ((_part (eql 'session)))
  "Remove all sessions."
  (gemini-companion-server-receive 'sessions-update nil))

(cl-defmethod gemini-companion-part-lighter ((_part (eql 'session)))
  "Return the number of the CLIs for the mode line, or a tooltip if it is 0."
  (if-let* ((sessions (gemini-companion-sessions)))
      (list (format ":%d" (length sessions)))
    '("" . "No CLI is connected")))

(provide 'gemini-companion-session)
;;; gemini-companion-session.el ends here
