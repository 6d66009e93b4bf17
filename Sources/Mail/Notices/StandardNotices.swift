// The built-in texts, in English. HTML without pictures, scripts and anything from elsewhere: it looks the same everywhere.

import PosternStore

enum StandardNotices {
    /// Text with its subject, and HTML.
    static func texts(_ kind: NoticeKind) -> (text: String, html: String) {
        switch kind {
        case .verification: (verification, html(verificationHTML))
        case .signIn: (signIn, html(signInHTML))
        case .deletion: (deletion, html(deletionHTML))
        case .change: (change, html(changeHTML))
        }
    }

    // MARK: An inbox is to be confirmed

    private static let verification = """
        Subject: {{code}} is your code for {{service}}

        Someone, most likely you, gave this address as their inbox at
        {{service}}. It hides the address from the apps that write to you.

        To confirm that it is yours, enter this code:

            {{code}}

        {{#link}}
        or open this link:

        {{link}}

        {{/link}}
        or simply reply to this message; the text does not matter.

        The code is valid for {{lifetime}}. If this was not you, do nothing:
        unless you confirm, no mail is ever sent on to this address.

        """

    private static let verificationHTML = """
        <h1 style="{{h1}}">Confirm your inbox</h1>
        <p style="{{p}}">Someone, most likely you, gave this address as their inbox at <strong>{{service}}</strong>. It hides the address from the apps that write to you.</p>
        <p style="{{p}}">To confirm that it is yours, enter this code:</p>
        <p style="margin:0 0 24px;padding:16px;background:#f0efe9;border-radius:8px;font:700 30px/1.2 ui-monospace,Menlo,Consolas,monospace;letter-spacing:4px;text-align:center;color:#1d2733">{{code}}</p>
        {{#link}}
        <p style="margin:0 0 24px"><a href="{{link}}" style="{{a}}">Confirm with one click</a></p>
        {{/link}}
        <p style="{{p}}">You can also simply reply to this message; the text does not matter.</p>
        <p style="{{small}}">The code is valid for {{lifetime}}. If this was not you, do nothing: unless you confirm, no mail is ever sent on to this address.</p>
        """

    // MARK: Someone wants to sign in

    private static let signIn = """
        Subject: Sign in to {{service}}

        Open this link in the browser in which you requested it:

        {{link}}

        It works once, and for {{lifetime}}. If you did not request it, do
        nothing: without this link no one can sign in.

        """

    private static let signInHTML = """
        <h1 style="{{h1}}">Sign in to {{service}}</h1>
        <p style="{{p}}">Open this link in the browser in which you requested it.</p>
        <p style="margin:0 0 24px"><a href="{{link}}" style="{{a}}">Sign in</a></p>
        <p style="{{small}}">It works once, and for {{lifetime}}. If you did not request it, do nothing: without this link no one can sign in.</p>
        """

    // MARK: Someone wants to delete everything

    private static let deletion = """
        Subject: Delete everything at {{service}}?

        You asked to delete all that {{service}} knows about you. Your relay
        addresses stop working permanently, and cannot be restored.

        To do it, open this link in the browser in which you are signed in:

        {{link}}

        It works once, and for {{lifetime}}. If you did not request this, do
        nothing, and sign out of all browsers: {{page}}

        """

    private static let deletionHTML = """
        <h1 style="{{h1}}">Delete everything?</h1>
        <p style="{{p}}">You asked to delete all that <strong>{{service}}</strong> knows about you. Your relay addresses stop working permanently, and cannot be restored.</p>
        <p style="{{p}}">To do it, open this link in the browser in which you are signed in.</p>
        <p style="margin:0 0 24px"><a href="{{link}}" style="{{danger}}">Continue to delete</a></p>
        <p style="{{small}}">It works once, and for {{lifetime}}. If you did not request this, do nothing, and sign out of all browsers on <a href="{{page}}" style="color:#0f5c55">your page</a>.</p>
        """

    // MARK: Mail goes elsewhere from now on

    private static let change = """
        Subject: Your mail at {{service}} goes to another inbox now

        From now on, mail to your relay addresses goes to another inbox of
        yours, and no longer to this one{{#stays}}, except for those addresses
        that you chose this inbox for{{/stays}}.

        If this was not you, someone else is signed in with your address.
        Sign out of all browsers and change it back{{#page}}: {{page}}{{/page}}

        """

    private static let changeHTML = """
        <h1 style="{{h1}}">Your mail goes to another inbox now</h1>
        <p style="{{p}}">From now on, mail to your relay addresses goes to another inbox of yours, and no longer to this one{{#stays}}, except for those addresses that you chose this inbox for{{/stays}}.</p>
        <p style="{{small}}">If this was not you, someone else is signed in with your address. Sign out of all browsers and change it back{{#page}} on <a href="{{page}}" style="color:#0f5c55">your page</a>{{/page}}.</p>
        """

    /// The sheet that all of them are written on. Styles are in the elements: many mail programs drop every style sheet.
    private static func html(_ content: String) -> String {
        var content = content
        for (name, style) in styles { content = content.replacing("{{\(name)}}", with: style) }
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light"><title>{{service}}</title></head>
            <body style="margin:0;padding:24px 12px;background:#f7f6f2;color:#1d2733;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif">
            <div style="max-width:480px;margin:0 auto;padding:32px;background:#ffffff;border:1px solid #e2dfd5;border-radius:12px">
            <p style="margin:0 0 24px;font-weight:600;color:#0f5c55">{{service}}</p>
            \(content)
            </div>
            <p style="max-width:480px;margin:16px auto 0;font-size:13px;color:#5b6570;text-align:center">Sent by {{relay_domain}}</p>
            </body>
            </html>

            """
    }

    private static let styles = [
        ("h1", "margin:0 0 16px;font-size:22px;line-height:1.25;color:#1d2733"),
        ("p", "margin:0 0 16px"),
        ("small", "margin:0;font-size:14px;color:#5b6570"),
        (
            "a",
            "display:inline-block;padding:12px 20px;background:#0f5c55;border-radius:8px;color:#ffffff;font-weight:600;text-decoration:none"
        ),
        (
            "danger",
            "display:inline-block;padding:12px 20px;background:#a3252b;border-radius:8px;color:#ffffff;font-weight:600;text-decoration:none"
        ),
    ]
}
