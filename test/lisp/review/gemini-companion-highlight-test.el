;;; gemini-companion-highlight-test.el --- Tests of the colors of a review  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'gemini-companion-highlight)
(require 'gemini-companion-review-test-helper)

(defconst gemini-companion-highlight-test-texts
  '("#+STARTUP: overview align\n#+SETUPFILE: http://127.0.0.1:%d/x\n* One\n\
hidden\n| a | b |\n|-\n| longer cell | c |\n[[http://evil][safe]]\n\
#+begin_src image\nx\n#+end_src\n"
    "<?xml version=\"1.0\"?>\n\
<!DOCTYPE a SYSTEM \"http://127.0.0.1:%d/x.dtd\" [\n\
<!ENTITY e SYSTEM \"file:///etc/passwd\">]>\n<a>&e;</a>\n"
    ";; -*- mode: image; eval: (error \"x\") -*-\n(a #.(error \"x\"))\n\f\n\
;;; Heading\n;; Local Variables:\n;; mode: server\n;; End:\n"
    "one\rtwo\r\n\tthree  \n\n\n# Title\n```image\nx\n```\n<!-- hidden -->\n"
    "int c = '\\'';\n#if 0\nhidden\n#endif\n@string{a=\"b\"}\n"
    "")
  "Texts on which some modes act; %d is the port of a server.")

(defun gemini-companion-highlight-test-harm (text)
  "Return what is wrong with the current buffer, which must contain TEXT."
  (with-demoted-errors "Highlighting: %S" (font-lock-ensure))
  (goto-char (point-min))
  (cond ((not (equal text (buffer-substring-no-properties (point-min)
                                                          (point-max))))
         "other text")
        ((buffer-narrowed-p) "narrowed")
        ((not enable-multibyte-characters) "unibyte")
        (buffer-read-only "read-only")
        ((seq-some (lambda (position)
                     (or (invisible-p position)
                         (get-char-property position 'display)
                         (get-char-property position 'composition)))
                   (number-sequence (point-min) (1- (point-max))))
         "hidden")))

(ert-deftest gemini-companion-highlight-modes-only-highlight ()
  (let* ((connections 0)
         (server (make-network-process
                  :name "look" :server t :service t :host "127.0.0.1"
                  :family 'ipv4 :noquery t
                  :log (lambda (&rest _) (cl-incf connections))))
         (port (process-contact server :service))
         (idle-timers (copy-sequence timer-idle-list))
         (inhibit-message t))
    (unwind-protect
        ;; All that Emacs may choose by a name or a first line.
        (dolist (mode (seq-uniq
                       (mapcar (lambda (entry) (car (ensure-list (cdr entry))))
                               (append auto-mode-alist interpreter-mode-alist
                                       magic-mode-alist
                                       magic-fallback-mode-alist))))
          (let ((auto-mode-alist (list (cons "\\.x\\'" mode)))
                (processes (process-list))
                (layout (gemini-companion-test-layout)))
            (dolist (format gemini-companion-highlight-test-texts)
              (let ((text (format format port)))
                (ert-info ((format "%s of %S" mode text))
                  (with-temp-buffer
                    (insert text)
                    (should-not (gemini-companion-test-demoted
                                  (gemini-companion-highlight "/nowhere/a.x")
                                  (gemini-companion-highlight-test-harm text))))
                  (accept-process-output nil 0)
                  (should (zerop connections))
                  (should-not (seq-difference (process-list) processes))
                  (should (equal layout (gemini-companion-test-layout))))))))
      ;; That of IDLWAVE waits for seconds, in which other timers run.
      (mapc #'cancel-timer (seq-difference timer-idle-list idle-timers #'eq))
      (delete-process server))))

(ert-deftest gemini-companion-highlight-chooses-a-mode-and-runs-no-hook ()
  (pcase-dolist (`(,name ,text ,mode)
                 '(("a.el" "" emacs-lisp-mode)
                   ("A.PY" "" python-mode)
                   ("a.h" "" c++-mode)
                   ("a.xml" "" sgml-mode)
                   ("a" "#!/usr/bin/env python\n" python-mode)
                   ("a" "#!/bin/sh -e\n" sh-mode)
                   ("a.org" "" text-mode)
                   ("a.png" "" text-mode)
                   ("a" "" text-mode)))
    (ert-info ((format "%s with %S" name text))
      (with-temp-buffer
        (insert text)
        (let* ((ran nil)
               (prog-mode-hook (list (lambda () (setq ran t))))
               (text-mode-hook prog-mode-hook))
          (gemini-companion-highlight (concat "/nowhere/" name))
          (should-not ran))
        (should (eq mode major-mode))))))

(define-derived-mode gemini-companion-highlight-test-mode prog-mode "Bad"
  "A mode that executes its text."
  (goto-char (point-min))
  (read (current-buffer))
  (eval (read (current-buffer)) t))

(ert-deftest gemini-companion-highlight-outlives-a-mode-that-fails-or-talks ()
  (let ((auto-mode-alist '(("\\.bad\\'" . gemini-companion-highlight-test-mode)))
        said)
    (cl-letf (((symbol-function 'current-message) (lambda () said))
              ((symbol-function 'message)
               (lambda (format &rest arguments)
                 ;; As Emacs does.
                 (setq said (and (not inhibit-message)
                                 (apply #'format-message format arguments))))))
      (pcase-dolist (`(,form ,mode)
                     '(((y-or-n-p "Go on? ") text-mode)
                       ((insert "more") text-mode)
                       ((error "Boom") text-mode)
                       ((message "%s" (file-exists-p default-directory))
                        gemini-companion-highlight-test-mode)))
        (let ((text (format "\u00fc %S\n" form)))
          (setq said "Announced")
          (with-temp-buffer
            (insert text)
            (should-not (gemini-companion-test-demoted
                          (gemini-companion-test-with-far-host
                            (let ((default-directory "/far:/"))
                              (gemini-companion-highlight "/nowhere/a.bad")))
                          (gemini-companion-highlight-test-harm text)))
            (should (equal "Announced" said))
            (should (eq mode major-mode))))))))

;;; gemini-companion-highlight-test.el ends here
