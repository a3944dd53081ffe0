;;; gemini-companion-lookup.el --- Answers about symbols  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The gemini-companion authors
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Answers to the questions of a model about a symbol: references and definition.
;; They come from the language server that Eglot runs, and for Lisp from this
;; Emacs.
;;
;; A symbol is searched for by its name in a file, so point does not matter.
;; Nothing that the user sees changes: no file is visited, and nothing waits for a
;; server.  Long work is done in slices.

;;; Code:

(require 'gemini-companion-privacy)
(require 'gemini-companion-context)
(require 'gemini-companion-text)
(require 'jsonrpc)
(require 'url-util)

(define-error 'gemini-companion-lookup-problem "Cannot answer")

;;;; Limits

(defconst gemini-companion-lookup-sendable (* 128 1024)
  "Size in bytes above which the text of a file is not sent to a server.
A pipe holds 64 KB; even after the server has answered a request, Emacs
waits until it has read the rest.")

(defun gemini-companion-lookup-fail (format &rest args)
  "Signal that a question cannot be answered, with FORMAT and ARGS."
  (signal 'gemini-companion-lookup-problem (list (apply #'format format args))))

(defmacro gemini-companion-lookup-guarded (answer &rest body)
  "Evaluate BODY without a message; if it fails, call ANSWER with the `:problem'.
The match data, which a timer or a filter must not change, are kept."
  (declare (indent 1) (debug t))
  (let ((problem (make-symbol "problem")))
    `(condition-case ,problem
         (save-match-data
           (let ((inhibit-message t)
                 (message-log-max nil))
             ,@body))
       (gemini-companion-lookup-problem
        (funcall ,answer (list :problem (cadr ,problem))))
       ;; The message of another error may contain text of a file.
       (error
        (funcall ,answer (list :problem (format "Emacs failed: %s"
                                                (car ,problem))))))))

;;;; Files

(defun gemini-companion-lookup-buffer (file)
  "Return the buffer that visits FILE, a true name, or nil."
  (let ((name (abbreviate-file-name file)))
    (seq-find (lambda (buffer)
                (equal name (buffer-local-value 'buffer-file-truename buffer)))
              (buffer-list))))

(defun gemini-companion-lookup-shared-p (file)
  "Return non-nil if FILE, a true name, may be shared."
  (and (not gemini-companion-paused)
       (not (gemini-companion-text-unreadable-reason file))
       (not (gemini-companion-privacy-name-hidden-p file))
       (or gemini-companion-share-outside-projects
           (gemini-companion-roots-above file (gemini-companion-roots-all)))))

(defun gemini-companion-lookup-true-name (file)
  "Return the true name of FILE, a file that may be shared.
Signal an error if FILE does not exist or may not be shared."
  (let ((name (gemini-companion-text-true-name file)))
    (unless (and name (gemini-companion-lookup-shared-p name))
      (gemini-companion-lookup-fail "%s is not shared by Emacs" file))
    (unless (file-regular-p name)
      (gemini-companion-lookup-fail "There is no file %s" file))
    name))

(defmacro gemini-companion-lookup--with-text (file &rest body)
  "Evaluate BODY in a temporary buffer with the text of FILE, a true name.
It is empty if the text is too large."
  (declare (indent 1) (debug t))
  (let ((name (make-symbol "name")))
    `(let ((,name ,file))
       (with-temp-buffer
         (unless (gemini-companion-lookup--large-p ,name)
           (if-let* ((buffer (gemini-companion-lookup-buffer ,name)))
               (insert (gemini-companion-text-of-buffer buffer))
             (gemini-companion-text-insert-file ,name)))
         (goto-char (point-min))
         ,@body))))

(defun gemini-companion-lookup--large-p (file)
  (< (* 1024 1024)                      ; bytes
     (if-let* ((buffer (gemini-companion-lookup-buffer file)))
         (buffer-size buffer)
       (or (file-attribute-size (file-attributes file)) 0))))

;;;; Symbols

(defun gemini-companion-lookup--find (file symbol line)
  "Return a cons of a line and a column of SYMBOL in FILE.
They belong to the whole word SYMBOL that is nearest to LINE, or the
first one if LINE is nil.  The column is in UTF-16 code units.
Signal an error if FILE does not have SYMBOL, or is too large."
  (when (gemini-companion-lookup--large-p file)
    (gemini-companion-lookup-fail "%s is too large; use grep_search" file))
  (gemini-companion-lookup--with-text file
    (or (car (seq-sort-by (lambda (location)
                            (abs (- (car location) (or line 0))))
                          #'<
                          (gemini-companion-lookup--occurrences symbol)))
        (gemini-companion-lookup-fail "The word %s is not in %s" symbol file))))

(defun gemini-companion-lookup--occurrences (symbol)
  "Return the locations of SYMBOL in this buffer.
That is a list of (LINE . COLUMN), one for each line."
  (let* ((case-fold-search nil)
         ;; Of a sign, no edge is a part of a longer word.
         (inside-p (lambda (position)
                     (and (< (point-min) position)
                          (save-excursion
                            (goto-char (1- position))
                            (looking-at-p "[[:alnum:]_$]\\{2\\}")))))
         (line 1)
         (counted (point-min))
         locations)
    ;; A regexp that begins with an edge takes ten times as long.
    (while (search-forward symbol nil t)
      (let ((beginning (match-beginning 0)))
        (unless (or (funcall inside-p beginning) (funcall inside-p (point)))
          (setq line (+ line (count-lines counted (line-beginning-position)))
                counted (line-beginning-position))
          (push (cons line (gemini-companion-text-units
                            (buffer-substring counted beginning)))
                locations)
          (forward-line))))
    (nreverse locations)))

;;;; Slices

(defun gemini-companion-lookup--map-in-slices (function list done &optional values)
  "Call FUNCTION with each element of LIST, then DONE with the values.
Emacs handles keys in between.  VALUES are the values of the elements before,
the last one first."
  (gemini-companion-lookup-guarded #'ignore
    (if (null list)
        (funcall done (nreverse values))
      (let ((end (+ (float-time) 0.003)))       ; then Emacs handles keys again
        (while (and list (< (float-time) end))
          (push (ignore-errors (funcall function (pop list))) values))
        ;; DONE may do as much work again.
        (run-at-time 0 nil #'gemini-companion-lookup--map-in-slices
                     function list done values)))))

;;;; Language servers

(defun gemini-companion-lookup-eglot (name &rest args)
  "Call the function NAME of Eglot with ARGS; return nil if it has none.
Before Emacs 30, some of the names had two hyphens."
  (let ((old (string-replace "eglot-" "eglot--" (symbol-name name))))
    (apply (or (seq-find #'fboundp (list name (intern old))) #'ignore) args)))

(defun gemini-companion-lookup-managed-p ()
  "Return non-nil if Eglot manages this buffer."
  (gemini-companion-lookup-eglot 'eglot-managed-p))

(defun gemini-companion-lookup-server (buffer)
  "Return the live language server of BUFFER, or nil."
  (with-current-buffer buffer
    (when-let* (((gemini-companion-lookup-managed-p))
                (server (gemini-companion-lookup-eglot 'eglot-current-server))
                ((jsonrpc-running-p server)))
      server)))

(defun gemini-companion-lookup-uri (file)
  "Return the URI of FILE, a true name, as Eglot writes it."
  (gemini-companion-lookup-eglot 'eglot-path-to-uri file))

(defun gemini-companion-lookup-path (uri)
  "Return the name of the file with URI, or nil if URI names no file."
  (when (string-prefix-p "file://" uri)
    (decode-coding-string
     (url-unhex-string (string-remove-prefix "file://" uri)) 'utf-8)))

(defun gemini-companion-lookup-neighbor (file)
  "Return a buffer with the language server of FILE, or nil.
It visits a file with the same extension, or both are of C or C++, and FILE
is below the root of its server; if there are several such roots, take the
innermost."
  (let ((kind (lambda (name)
                (let ((extension (or (file-name-extension name) "")))
                  (if (string-match-p "\\`[ch]\\(?:[ch]\\|pp\\|xx\\|\\+\\+\\)?\\'"
                                      extension)
                      "c"
                    extension))))
        best)
    (dolist (buffer (buffer-list) (car best))
      (when-let* ((other (buffer-file-name buffer))
                  ((not (file-remote-p other)))
                  ((equal (funcall kind file) (funcall kind other)))
                  (server (gemini-companion-lookup-server buffer))
                  (folders (gemini-companion-lookup-eglot
                            'eglot-workspace-folders server))
                  (root (gemini-companion-lookup-path
                         (plist-get (aref folders 0) :uri)))
                  ((gemini-companion-text-in-directory-p file root))
                  ((< (length (cdr best)) (length root))))
        (setq best (cons buffer root))))))

(defun gemini-companion-lookup--query-server (file symbol line requests answer then)
  "Ask the language server of FILE about SYMBOL, on LINE or near it.
REQUESTS is a list of (METHOD . PARAMS), to which the location of SYMBOL is
added.  If no buffer visits FILE, it is open in the server meanwhile, unless
it is too large.  Call THEN with the results, of which (error MESSAGE) is
one that failed; a problem there goes to ANSWER."
  (pcase-let* ((visited (gemini-companion-lookup-buffer file))
               (buffer (or visited (gemini-companion-lookup-neighbor file)))
               (server (or (and buffer (gemini-companion-lookup-server buffer))
                           (gemini-companion-lookup-fail "No language server \
runs for this file; use grep_search")))
               (`(,at . ,column) (gemini-companion-lookup--find file symbol line))
               (text (unless visited
                       (gemini-companion-lookup--with-text file (buffer-string))))
               (large (< gemini-companion-lookup-sendable (string-bytes (or text ""))))
               (location `( :textDocument
                            (:uri ,(gemini-companion-lookup-uri file))
                            :position (:line ,(1- at) :character ,column))))
    (cl-flet ((ask (open)
                (when open
                  (gemini-companion-lookup-open file server text buffer))
                (with-current-buffer buffer
                  (gemini-companion-lookup-request
                   server
                   (cl-loop for (method . params) in requests
                            collect `(,method ,@location ,@params))
                   (lambda (results)
                     (gemini-companion-lookup-guarded answer
                       ;; It may be visited meanwhile.
                       (when (and open (not (gemini-companion-lookup-buffer file)))
                         (gemini-companion-lookup-close file server))
                       (when (and large (seq-empty-p (car results)))
                         (gemini-companion-lookup-fail "%s is too large to be \
sent to the language server; open it in Emacs, or use grep_search" file))
                       (funcall then results)))
                   'deferred))))
      (if (or visited large)
          (ask nil)
        (gemini-companion-lookup--when-read
         server answer (lambda () (ask (not (gemini-companion-lookup-buffer file)))))))))

(defun gemini-companion-lookup--when-read (server answer send)
  "Call SEND once SERVER has answered; give a problem there to ANSWER.
Sending a text to a server that does not read would block Emacs."
  (gemini-companion-lookup-request
   server '((:$/gemini-companion))
   (lambda (_)
     (gemini-companion-lookup-guarded answer
       (funcall send)))))

(defun gemini-companion-lookup-request (server requests then &optional deferred)
  "Send SERVER the REQUESTS, a list of (METHOD . PARAMS).
Call THEN with a list of the results in their order, with (error MESSAGE)
for one that failed, once all are known.  If DEFERRED is non-nil, Eglot
first sends changes in this buffer that SERVER does not have yet."
  (let* ((left (length requests))
         (results (make-list left nil)))
    (seq-do-indexed
     (pcase-lambda (`(,method . ,params) index)
       (let ((done (lambda (result)
                     (setf (nth index results) result)
                     (when (zerop (cl-decf left))
                       (funcall then results)))))
         (jsonrpc-async-request
          server method params
          :success-fn done
          :error-fn (lambda (problem)
                      (funcall done (list 'error (plist-get problem :message))))
          :timeout-fn (lambda () (funcall done '(error "No answer in time")))
          :timeout 14
          ;; Another request with the same key would take its place.
          :deferred (and deferred (make-symbol "question")))))
     requests)))

(defvar gemini-companion-lookup--version 0
  "The version of the last text that was sent, of any file.
A late report about an earlier text cannot be taken for a later one.")

(defun gemini-companion-lookup-open (file server text neighbor)
  "Open FILE, a true name, with TEXT in SERVER; return the version of TEXT.
NEIGHBOR is a buffer of a file of the same language."
  (jsonrpc-notify
   server :textDocument/didOpen
   `(:textDocument
     ( :uri ,(gemini-companion-lookup-uri file)
       :version ,(cl-incf gemini-companion-lookup--version)
       :languageId ,(with-current-buffer neighbor
                      (gemini-companion-lookup--language))
       :text ,text)))
  gemini-companion-lookup--version)

(defun gemini-companion-lookup--language ()
  "Return the language of this buffer for its server, as Eglot names it."
  (or (get major-mode 'eglot-language-id)
      (cl-loop for (modes) in (bound-and-true-p eglot-server-programs)
               thereis (pcase modes
                         (`(,(pred (eq major-mode)) :language-id ,name) name)
                         ((pred consp)
                          (plist-get (cdr-safe (assq major-mode
                                                     (seq-filter #'consp modes)))
                                     :language-id))))
      (replace-regexp-in-string "\\(?:-ts\\)?-mode\\'" ""
                                (symbol-name major-mode))))

(defun gemini-companion-lookup-close (file server)
  "Close FILE, a true name, in SERVER."
  (jsonrpc-notify server :textDocument/didClose
                  (list :textDocument
                        (list :uri (gemini-companion-lookup-uri file)))))

(defun gemini-companion-lookup--locations (result)
  "Return RESULT, locations, as a list of (FILE LINE).
Signal an error if RESULT is an error."
  (when (eq 'error (car-safe result))
    (gemini-companion-lookup-fail "The language server failed: %s"
                                 (cadr result)))
  (delete-dups
   (mapcar (lambda (location)
             (let ((range (or (plist-get location :targetSelectionRange)
                              (plist-get location :range))))
               (list (gemini-companion-lookup-path
                      (or (plist-get location :targetUri)
                          (plist-get location :uri)))
                     (1+ (plist-get (plist-get range :start) :line)))))
           (if (keywordp (car-safe result))
               (list result)
             (append result nil)))))

;;;; References

(defun gemini-companion-lookup-references (file symbol line after answer)
  "Find the references to SYMBOL, which occurs in FILE, on LINE if non-nil.
Call ANSWER with a plist: `:total', their number; `:locations', lists
of FILE, LINE and TEXT, 100 at most, without the first AFTER; or
`:problem', why there is no answer."
  (gemini-companion-lookup-guarded answer
    (gemini-companion-lookup--query-server
     (gemini-companion-lookup-true-name file) symbol line
     '((:textDocument/references :context (:includeDeclaration t)))
     answer
     (lambda (results)
       (gemini-companion-lookup-shared
        (gemini-companion-lookup--locations (car results))
        (lambda (locations)
          (gemini-companion-lookup--texts
           (seq-take (seq-drop locations (or after 0)) 100)
           (lambda (found)
             (funcall answer
                      (list :total (length locations) :locations found))))))))))

(defun gemini-companion-lookup-shared (locations then)
  "Call THEN with those of LOCATIONS that may be shared, in order.
They are lists of FILE, whose true name is given to THEN, and maybe LINE."
  (gemini-companion-lookup--map-in-slices
   (pcase-lambda (`(,file . ,group))
     (when-let* ((file)
                 (name (gemini-companion-text-true-name file))
                 ((gemini-companion-lookup-shared-p name)))
       (mapcar (lambda (location) (cons name (cdr location))) group)))
   (seq-group-by #'car locations)
   (lambda (groups)
     (funcall then (seq-sort-by
                    #'car #'string<
                    (seq-sort-by (lambda (location) (or (cadr location) 0)) #'<
                                 (delete-dups (apply #'append groups))))))))

(defun gemini-companion-lookup--texts (locations then)
  "Call THEN with LOCATIONS, each with the beginning of its line."
  (gemini-companion-lookup--map-in-slices
   (lambda (group)
     (gemini-companion-lookup--with-text (car group)
       (let ((at 1))
         (mapcar (pcase-lambda (`(,file ,line))
                   (forward-line (- line at))
                   (setq at line)
                   (list file line
                         (buffer-substring-no-properties
                          (point) (min (line-end-position) (+ (point) 400)))))
                 (cdr group)))))
   (seq-group-by #'car locations)
   (lambda (groups) (funcall then (apply #'append groups)))))

;;;; Definition

(defun gemini-companion-lookup-definition (file symbol line answer)
  "Find the definition of SYMBOL, which occurs in FILE, on LINE if non-nil.
Call ANSWER with a plist: `:locations', lists of FILE and LINE;
`:documentation', with the signature, and `:source', maybe nil or empty;
or `:problem', why there is no answer."
  (gemini-companion-lookup-guarded answer
    (let ((file (gemini-companion-lookup-true-name file)))
      (if (string-suffix-p ".el" file)
          (let ((lisp (intern-soft symbol)))
            (gemini-companion-lookup--answer-definition
             symbol
             (delq nil (mapcar
                        (lambda (type)
                          (gemini-companion-lookup--elisp-location lisp type))
                        (list (symbol-function lisp) 'defvar 'defface)))
             (ignore-errors
               (or (and (fboundp lisp) (documentation lisp t))
                   (documentation-property lisp 'variable-documentation t)))
             answer))
        (gemini-companion-lookup--query-server
         file symbol line
         '((:textDocument/definition) (:textDocument/hover))
         answer
         (pcase-lambda (`(,definition ,hover))
           (gemini-companion-lookup--answer-definition
            symbol (gemini-companion-lookup--locations definition)
            (gemini-companion-lookup--hover hover) answer)))))))

(defun gemini-companion-lookup--answer-definition (symbol locations documentation answer)
  "Call ANSWER with the definition of SYMBOL at LOCATIONS.
DOCUMENTATION is a string or nil.  The answer has nothing about a definition
in a file that may not be shared, and only the location, not the text, of a
definition outside the roots."
  (let* ((locations (cl-loop for (file line) in locations
                             for name = (and file
                                             (gemini-companion-text-true-name file))
                             when name collect (list name line)))
         (open (seq-remove (lambda (location)
                             (gemini-companion-privacy-name-hidden-p
                              (car location)))
                           locations))
         (first (seq-find (lambda (location)
                            (gemini-companion-lookup-shared-p (car location)))
                          open)))
    (cond ((null locations)
           (gemini-companion-lookup-fail "No definition of %s was found" symbol))
          ((null open)
           (gemini-companion-lookup-fail
            "The definition of %s is in a file that Emacs does not share"
            symbol)))
    (funcall answer
             (list :locations open
                   ;; It may come from any of the locations.
                   :documentation (and (length= open (length locations))
                                       documentation)
                   :source (and first (gemini-companion-lookup--source first))))))

(defun gemini-companion-lookup--source (location)
  "Return the text of the definition at LOCATION, 30 lines at most.
It includes the following lines that are empty or indented more than
its first one, and the line that closes it."
  (gemini-companion-lookup--with-text (car location)
    (forward-line (1- (cadr location)))
    (let ((beginning (point))
          (indentation (current-indentation))
          (left 30))
      (forward-line)
      (while (and (< 1 (setq left (1- left)))
                  (not (eobp))
                  (or (looking-at-p "[ \t]*$")
                      (< indentation (current-indentation))))
        (forward-line))
      (when (looking-at-p "[ \t]*[])}]")
        (forward-line))
      (string-trim-right
       (buffer-substring-no-properties beginning (point))))))

(defun gemini-companion-lookup--hover (result)
  "Return the text in RESULT of a request for the hover, maybe empty."
  ;; A failed request has no contents.
  (let ((contents (plist-get result :contents)))
    (string-trim
     (replace-regexp-in-string
      "^```.*\n?" ""
      (mapconcat (lambda (part)
                   (if (stringp part) part (or (plist-get part :value) "")))
                 (if (vectorp contents) contents (list contents))
                 "\n")))))

(defun gemini-companion-lookup--elisp-location (symbol type)
  "Return the location of the Lisp SYMBOL as (FILE LINE), or nil.
For TYPE, see `find-lisp-object-file-name'."
  (when-let* ((file (and type (find-lisp-object-file-name symbol type)))
              ((stringp file))
              ((file-exists-p file)))
    (list file
          (gemini-companion-lookup--with-text file
            (if (re-search-forward
                 (format "^[ \t]*([[:alnum:]-]*def[^ ]* +(?'?%s\\_>"
                         (regexp-quote (symbol-name symbol)))
                 nil t)
                (line-number-at-pos)
              1)))))

(provide 'gemini-companion-lookup)
;;; gemini-companion-lookup.el ends here
