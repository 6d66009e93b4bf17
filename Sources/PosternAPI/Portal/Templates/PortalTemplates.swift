// The layout, and the pages for anyone who comes: the door and the links of messages. Mustache; `{{…}}` is escaped.

enum PortalTemplates {
    /// Every view by its name.
    static let views: [String: String] = [
        "sign-in": signIn, "sent": sent, "sign-in-link": signInLink, "link": link, "confirm": confirm, "confirmed": confirmed,
        "refusal": refusal, "goodbye": goodbye, "overview": overview, "account": account, "stop": stop, "remove": remove,
        "inboxes": inboxes, "data": data,
        "delete": delete, "delete-now": deleteNow,
    ]

    static let layout = #"""
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta name="robots" content="noindex, nofollow">
        <title>{{title}} – {{service}}</title>
        <link rel="icon" type="image/svg+xml" href="/me/mark.svg?v={{version}}">
        <link rel="stylesheet" href="/me/style.css?v={{version}}">
        </head>
        <body{{#is_narrow}} class="narrow"{{/is_narrow}}>
        <a class="skip" href="#content">Skip to content</a>
        <header class="bar">
        <div class="bar-inner">
        <a class="brand" href="/me">{{{mark}}}<span>{{service}}</span></a>
        {{#nav}}
        <nav aria-label="Main">
        <ul>
        {{#items}}
        <li><a href="{{path}}"{{#current}} aria-current="page"{{/current}}>{{title}}</a></li>
        {{/items}}
        </ul>
        </nav>
        <form class="sign-out" method="post" action="/me/sign-out">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <button class="plain" type="submit">Sign out</button>
        </form>
        {{/nav}}
        </div>
        </header>
        <main id="content" tabindex="-1">
        {{#notice}}
        <p class="message done" role="status">{{text}}</p>
        {{/notice}}
        {{#alert}}
        <p class="message wrong" role="alert">{{text}}</p>
        {{/alert}}
        {{{content}}}
        </main>
        <footer class="foot">
        <p>{{service}} keeps your real address from the apps that write to you. It never keeps the text of a message.</p>
        </footer>
        </body>
        </html>

        """#

    private static let signIn = #"""
        <div class="door">
        <h1>Sign in to {{service}}</h1>
        <p class="lead">See the addresses that hide your inbox, and decide what comes through.</p>
        </div>
        <form class="card stack" method="post" action="/me/sign-in">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <div class="field">
        <label for="email">Your real email address</label>
        <input id="email" name="email" type="email" autocomplete="email" inputmode="email" spellcheck="false" autocapitalize="none" required maxlength="254" placeholder="name@example.com" aria-describedby="email-help{{#problem}} problem{{/problem}}"{{#problem}} aria-invalid="true"{{/problem}} value="{{typed}}">
        {{#problem}}<p class="field-problem" id="problem" role="alert">{{problem}}</p>{{/problem}}
        <p class="help" id="email-help">The inbox that mail is sent on to. There is no password: a link that works once is sent there.</p>
        </div>
        <button type="submit">Send me a link</button>
        </form>
        """#

    private static let sent = #"""
        <div class="door">
        <h1>Check your inbox</h1>
        <p class="lead">If this address is known here, a link is on its way to it.</p>
        </div>
        <div class="card">
        <ul class="points">
        <li>Open it <strong>in this browser</strong>; elsewhere it does nothing.</li>
        <li>It works once, for 20 minutes.</li>
        <li>Nothing came? Check the spam folder, and check that the address is the one that your mail is sent on to.</li>
        </ul>
        <p><a href="/me/sign-in">Request another link</a></p>
        </div>
        """#

    private static let signInLink = #"""
        <div class="door">
        <h1>You are almost in</h1>
        <p class="lead">One more step, so that programs that scan your mail do not sign in for you.</p>
        </div>
        <form class="card stack" method="post" action="/me/sign-in/{{token}}">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <button type="submit">Sign in</button>
        </form>
        """#

    private static let link = #"""
        <div class="door">
        {{#other_browser}}
        <h1>This link belongs to another browser</h1>
        <p class="lead">Open it in the browser in which you requested it, or request a new one here.</p>
        {{/other_browser}}
        {{^other_browser}}
        <h1>This link has expired</h1>
        <p class="lead">Each link works once and for a limited time, and a newer one replaces the previous one.</p>
        {{/other_browser}}
        </div>
        <div class="card">
        {{#is_confirmation}}
        <p>Request another message where you gave your address, or <a href="/me/sign-in">sign in</a> with an inbox that is already confirmed.</p>
        {{/is_confirmation}}
        {{^is_confirmation}}
        <p><a class="button" href="/me/sign-in">Request a new link</a></p>
        {{/is_confirmation}}
        </div>
        """#

    private static let confirm = #"""
        <div class="door">
        <h1>Is this your inbox?</h1>
        <p class="lead">If you confirm, {{service}} sends mail from your apps on to the inbox in which you found this link.</p>
        </div>
        <form class="card stack" method="post" action="/me/confirm/{{token}}">
        <button type="submit">Yes, confirm it</button>
        <p class="help">If you did not request this, close this page: nothing happens.</p>
        </form>
        """#

    private static let confirmed = #"""
        <div class="door">
        <h1>Your inbox is confirmed</h1>
        <p class="lead">Mail can be sent on to it from now on.</p>
        </div>
        <div class="card">
        <p><a class="button" href="/me">Go to your page</a></p>
        </div>
        """#

    private static let refusal = #"""
        <div class="door">
        <h1>{{title}}</h1>
        <p class="lead">{{text}}</p>
        </div>
        <div class="card">
        <p><a class="button" href="/me">Go to your page</a></p>
        </div>
        """#

    private static let goodbye = #"""
        <div class="door">
        <h1>Everything is deleted</h1>
        <p class="lead">Your addresses no longer exist. Mail to them is refused as if they had never existed.</p>
        </div>
        """#
}
