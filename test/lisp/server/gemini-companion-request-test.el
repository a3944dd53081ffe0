;;; gemini-companion-request-test.el --- Tests of requests  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-arrival)
(require 'gemini-companion-overview nil t)
(require 'gemini-companion-notify nil t)
(require 'gemini-companion-part)
(require 'gemini-companion-request)
(require 'gemini-companion-review)
(require 'gemini-companion-status nil t)
(require 'gemini-companion-test-helper)

;;;; A kind of request, as the recipe of the design tells

(cl-defstruct (gemini-companion-request-test-call
               (:include gemini-companion-request (kind 'call))
               (:constructor gemini-companion-request-test-make-call))
  "A call of a CLI, which wants to talk about SUBJECT.
It is CERTAIN, APPEARS by itself if that is non-nil, and was ANSWERED."
  subject (certain t) appears answered)

(defvar gemini-companion-request-test-calls nil
  "The open calls.")

(defvar gemini-companion-request-test-shown nil
  "The subjects that were shown, the last one first.
Each is a cons of `select' or `appear' and the subject.")

(defun gemini-companion-request-test-calls ()
  "Return each call that is open."
  gemini-companion-request-test-calls)

(cl-defmethod gemini-companion-request-label
  ((call gemini-companion-request-test-call))
  "Return what CALL is about."
  (concat "calls about " (gemini-companion-request-test-call-subject call)))

(cl-defmethod gemini-companion-request-certain-p
  ((call gemini-companion-request-test-call))
  "Return non-nil if CALL certainly waits."
  (gemini-companion-request-test-call-certain call))

(cl-defmethod gemini-companion-request-show
  ((call gemini-companion-request-test-call))
  "Record that the user has gone to CALL."
  (push (cons 'select (gemini-companion-request-test-call-subject call))
        gemini-companion-request-test-shown))

(cl-defmethod gemini-companion-request-waits-to-appear-p
  ((call gemini-companion-request-test-call))
  "Return non-nil if CALL is to appear."
  (gemini-companion-request-test-call-appears call))

(cl-defmethod gemini-companion-request-appear
  ((call gemini-companion-request-test-call))
  "Record that CALL has appeared."
  (setf (gemini-companion-request-test-call-appears call) nil)
  (push (cons 'appear (gemini-companion-request-test-call-subject call))
        gemini-companion-request-test-shown))

(cl-defmethod gemini-companion-part-hooks ((_part (eql 'request-test)))
  "Contribute each open call to the requests."
  '((gemini-companion-request-list-functions gemini-companion-request-test-calls)))

(defun gemini-companion-request-test-ring (session subject &rest slots)
  "Begin a call of SESSION about SUBJECT with SLOTS, and return it."
  (let ((call (apply #'gemini-companion-request-test-make-call
                     :session session :subject subject slots)))
    (setq gemini-companion-request-test-calls
          (append gemini-companion-request-test-calls (list call)))
    (gemini-companion-request-notify call 'opened)
    call))

(defun gemini-companion-request-test-hang-up (call)
  "End CALL."
  (setq gemini-companion-request-test-calls
        (remq call gemini-companion-request-test-calls))
  (gemini-companion-request-notify call 'closed))

;;;; Helpers

(defmacro gemini-companion-request-test-with (&rest body)
  "Run BODY with `session', a CLI in the buffer `terminal', that may call.
`notices' has the texts of the open notifications, the last one first."
  (declare (indent 0) (debug t))
  `(let ((gemini-companion-request-test-calls nil)
         (gemini-companion-request-test-shown nil)
         (gemini-companion-review-arrival 'now))
     (gemini-companion-test-with-notices
         '(state edit proposal notify auto arrival request-test)
       (ignore notices)
       ,@body)))

(defun gemini-companion-request-test-count ()
  "Return what the mode line counts, a string that may be empty."
  (car (gemini-companion-part-lighter 'notify)))

(defun gemini-companion-request-test-text (command)
  "Return the text of the buffer that COMMAND displays, and kill it."
  (funcall command)
  (prog1 (buffer-substring-no-properties (point-min) (point-max))
    (kill-buffer)))

(defun gemini-companion-request-test-reviewed ()
  "Return what the command `gemini-companion-review' displays."
  (let ((gemini-companion-request-test-shown nil))
    (gemini-companion-review)
    (car gemini-companion-request-test-shown)))

;;;; Tests

(ert-deftest gemini-companion-request-of-a-new-kind-is-shown-everywhere ()
  (gemini-companion-test-needs-add-on 'pages)
  (gemini-companion-request-test-with
    (let ((call (gemini-companion-request-test-ring session "lunch")))
      (should (equal "?1 " (gemini-companion-request-test-count)))
      (should (eq 'waiting (gemini-companion-session-state session)))
      (should (string-match-p "\\`Waiting  1 to answer\n  calls about lunch  shop "
                              (gemini-companion-request-test-text
                               #'gemini-companion-list)))
      (with-current-buffer terminal
        (should (string-prefix-p " 1 to answer: " (gemini-companion-notify--header))))
      (gemini-companion-test-eventually
        (equal '("Gemini CLI (shop) calls about lunch; \
M-x gemini-companion-review shows it")
               notices))
      (should (equal '(select . "lunch") (gemini-companion-request-test-reviewed)))
      (should-error (gemini-companion-request-answer call 'allow) :type 'user-error)
      (gemini-companion-request-test-hang-up call)
      (should-not notices)
      (should (equal "" (gemini-companion-request-test-count)))
      (should (eq 'unknown (gemini-companion-session-state session)))
      (should-error (gemini-companion-review) :type 'user-error))))

(ert-deftest gemini-companion-request-is-shown-from-its-line-in-the-list ()
  (gemini-companion-test-needs-add-on 'pages)
  (gemini-companion-request-test-with
    (gemini-companion-request-test-ring session "lunch")
    (save-window-excursion
      (gemini-companion-list)
      (goto-char (point-min))
      (search-forward "calls about")
      (gemini-companion-overview-visit)
      (should (equal '((select . "lunch")) gemini-companion-request-test-shown))
      ;; Keys that answer edits do nothing there.
      (should-error (gemini-companion-edit-accept) :type 'user-error)
      (kill-buffer))))

(ert-deftest gemini-companion-request-that-may-have-ended-comes-last ()
  (gemini-companion-test-needs-add-on 'pages)
  (gemini-companion-request-test-with
    (gemini-companion-request-test-ring session "maybe" :certain nil :since 1)
    (should (equal "" (gemini-companion-request-test-count)))
    (should (eq 'unknown (gemini-companion-session-state session)))
    (should (equal '(select . "maybe") (gemini-companion-request-test-reviewed)))
    ;; The user is told nevertheless.
    (gemini-companion-test-eventually
      (string-search "calls about maybe" (or (car notices) "")))
    (gemini-companion-request-test-ring session "hidden" :since 2 :problem "No display")
    (should (equal '(select . "hidden") (gemini-companion-request-test-reviewed)))
    (gemini-companion-request-test-ring session "late" :since 4)
    (gemini-companion-request-test-ring session "early" :since 3)
    (should (equal '(select . "early") (gemini-companion-request-test-reviewed)))
    (should (equal "?3 " (gemini-companion-request-test-count)))
    (should (equal '("maybe" "hidden" "early" "late")
                   (mapcar #'gemini-companion-request-test-call-subject
                           (gemini-companion-requests session))))))

(ert-deftest gemini-companion-request-of-a-cli-without-a-session-is-shown ()
  (gemini-companion-test-needs-add-on 'pages)
  (gemini-companion-request-test-with
    (let ((call (gemini-companion-request-test-ring
                 (gemini-companion-session-make
                  :id "linked-7" :client "qwen" :directory "/src/far/") "tea")))
      (should (equal "?1 " (gemini-companion-request-test-count)))
      (let ((text (gemini-companion-request-test-text #'gemini-companion-list)))
        (should (string-search "Waiting  1 to answer\n  calls about tea  far " text))
        (should (string-search "Qwen Code (far)  disconnected  1 to answer\n" text)))
      (gemini-companion-test-eventually
        (string-prefix-p "Qwen Code (far) calls about tea" (or (car notices) "")))
      (gemini-companion-request-test-hang-up call)
      (should-not notices))))

(ert-deftest gemini-companion-request-of-the-selected-buffer-comes-last ()
  (gemini-companion-test-needs-add-on 'terminal)
  (gemini-companion-request-test-with
    (gemini-companion-state-report session 'question nil)
    (gemini-companion-test-eventually
      (equal "?1 " (gemini-companion-request-test-count)))
    (gemini-companion-request-test-ring
     (gemini-companion-session-make
      :id "linked-7" :client "qwen" :directory "/src/far/") "tea")
    (gemini-companion-review)
    (should (eq terminal (window-buffer)))
    (should (equal '(select . "tea") (gemini-companion-request-test-reviewed)))))

(ert-deftest gemini-companion-request-is-followed-by-the-next-one ()
  "Each one is reached from the one before, and the first from the last."
  (gemini-companion-request-test-with
    (let* ((calls (mapcar (lambda (subject)
                            (gemini-companion-request-test-ring session subject))
                          '("lunch" "tea" "cake" "wine")))
           (buffers (mapcar (lambda (call)
                              (generate-new-buffer
                               (gemini-companion-request-test-call-subject call)))
                            calls))
           (visited nil))
      (cl-letf (((symbol-function 'gemini-companion-request-buffer)
                 (lambda (call) (nth (seq-position calls call) buffers))))
        (dotimes (_ 5)
          (gemini-companion-review)
          (pcase-let ((`(,_ . ,subject) (car gemini-companion-request-test-shown)))
            (push subject visited)
            (switch-to-buffer (get-buffer subject)))))
      (mapc #'kill-buffer buffers)
      (should (equal '("lunch" "tea" "cake" "wine" "lunch") (nreverse visited))))))

(ert-deftest gemini-companion-request-and-the-question-of-its-cli-are-one ()
  (gemini-companion-test-needs-add-on 'terminal)
  (gemini-companion-request-test-with
    (gemini-companion-state-report session 'question nil)
    (gemini-companion-test-eventually
      (equal "?1 " (gemini-companion-request-test-count)))
    (dolist (certain '(t nil))
      (let ((call (gemini-companion-request-test-ring session "lunch"
                                                      :certain certain)))
        (should (equal (list call) (gemini-companion-requests)))
        (should (equal (if certain "?1 " "") (gemini-companion-request-test-count)))
        (gemini-companion-request-test-hang-up call)
        (should (equal '(question) (mapcar #'gemini-companion-request-kind
                                           (gemini-companion-requests))))))))

(ert-deftest gemini-companion-request-appears-and-is-not-selected ()
  (gemini-companion-request-test-with
    (let ((gemini-companion-review-arrival 'notify))
      (gemini-companion-request-test-ring session "lunch" :appears t)
      (gemini-companion-test-run-timers)
      (should-not gemini-companion-request-test-shown))
    (gemini-companion-request-test-ring session "tea")
    (gemini-companion-test-eventually gemini-companion-request-test-shown)
    (should (equal '((appear . "lunch")) gemini-companion-request-test-shown))))

(ert-deftest gemini-companion-request-is-not-the-successor-of-an-edit ()
  (let ((gemini-companion-review-view 'ediff))
    (gemini-companion-request-test-with
      (let (edit)
        (gemini-companion-proposal-open 1 session (expand-file-name "a") "new\n")
        (setq edit (car (gemini-companion-edits-open)))
        (gemini-companion-review)
        (should (eq edit (gemini-companion-edit-shown)))
        (gemini-companion-request-test-ring session "lunch" :appears t)
        (gemini-companion-test-run-timers)
        ;; No call appears beside a review.
        (should-not gemini-companion-request-test-shown)
        ;; The windows are those of before.
        (setf (gemini-companion-turn-ended (gemini-companion-edit-turn edit))
              (float-time))
        (let ((real-this-command #'gemini-companion-edit-accept))
          (gemini-companion-edit-accept edit))
        (should-not gemini-companion-request-test-shown)
        (gemini-companion-test-eventually gemini-companion-request-test-shown)
        (should (equal '((appear . "lunch")) gemini-companion-request-test-shown))))))

(ert-deftest gemini-companion-request-function-that-fails-stops-no-other ()
  (let* ((events nil)
         (gemini-companion-request-functions
          (list (lambda (&rest _) (error "Boom"))
                (lambda (request event) (push (cons request event) events)))))
    (gemini-companion-test-demoted
      (gemini-companion-request-notify 'request 'opened))
    (should (equal '((request . opened)) events))))

;;; gemini-companion-request-test.el ends here
