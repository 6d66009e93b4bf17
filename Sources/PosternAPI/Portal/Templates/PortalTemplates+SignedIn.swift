// The pages for anyone who is signed in.

extension PortalTemplates {
    static let overview = #"""
        <div class="head">
        <h1>Your addresses</h1>
        {{#inbox}}<p class="lead">Mail to them is sent on to <strong>{{inbox}}</strong>{{#has_others}}, unless an address below names another inbox{{/has_others}}. <a href="/me/inboxes">Change</a></p>{{/inbox}}
        {{^inbox}}<p class="lead">No inbox of yours is confirmed, so nothing is sent on. <a href="/me/inboxes">Confirm one</a></p>{{/inbox}}
        </div>
        {{^has_active}}
        <div class="card empty">
        <h2>No addresses yet</h2>
        <p>When you sign up with an app and hide your address, the address that the app gets instead appears here.</p>
        </div>
        {{/has_active}}
        {{#has_active}}
        <ul class="cards">
        {{#active}}
        <li class="card address{{^on}} off{{/on}}">
        <div class="address-head">
        <span class="tile" aria-hidden="true">{{initial}}</span>
        <div class="names">
        <h2><a href="/me/addresses/{{number}}">{{team}}</a></h2>
        <p class="quiet">{{#apps}}{{apps}} · {{/apps}}since {{since}}</p>
        </div>
        <span class="state {{#on}}is-on{{/on}}{{^on}}is-off{{/on}}">{{#on}}Forwarding on{{/on}}{{^on}}Forwarding off{{/on}}</span>
        </div>
        <p class="mail"><code>{{address}}</code></p>
        {{#other_inbox}}<p class="quiet">Sent on to <strong>{{other_inbox}}</strong></p>{{/other_inbox}}
        {{#known}}<p class="quiet">They know {{known}}.</p>{{/known}}
        {{#written_day}}<p class="caution">They wrote your own address in a message, last on {{written_day}}. <a href="/me/addresses/{{number}}#known">What that means</a></p>{{/written_day}}
        <div class="address-foot">
        <p class="quiet">{{#has_traffic}}{{to_you}} to you, {{from_you}} from you in 30 days{{/has_traffic}}{{^has_traffic}}Nothing came through in 30 days{{/has_traffic}}</p>
        <form method="post" action="/me/addresses/{{number}}/forwarding">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <input type="hidden" name="state" value="{{#on}}off{{/on}}{{^on}}on{{/on}}">
        <button class="second" type="submit">{{#on}}Turn off{{/on}}{{^on}}Turn on{{/on}}<span class="unseen"> forwarding from {{team}}</span></button>
        </form>
        </div>
        </li>
        {{/active}}
        </ul>
        {{/has_active}}
        {{#has_open}}
        <section class="ended" aria-labelledby="open">
        <h2 id="open">Without a relay address</h2>
        <p class="quiet">You use these too, but their mail does not come through here.</p>
        <ul class="rows">
        {{#open}}
        <li><a href="/me/addresses/{{number}}">{{team}}</a>{{#apps}} · {{apps}}{{/apps}}
        <p class="quiet">{{#known}}They know <strong>{{known}}</strong>.{{/known}}{{#has_no_address}} They were given no address of yours.{{/has_no_address}}</p></li>
        {{/open}}
        </ul>
        </section>
        {{/has_open}}
        {{#has_moved}}
        <section class="ended" aria-labelledby="moved">
        <h2 id="moved">Moved to another company</h2>
        <p class="quiet">Your app moved there, and your consent with it. The old address stops working on the day shown.</p>
        <ul class="rows">
        {{#moved}}
        <li><a href="/me/addresses/{{number}}">{{team}}</a>{{#address}} <code>{{address}}</code>{{/address}}
        {{#move}}<p class="quiet">{{app}} moved to <a href="/me/addresses/{{number}}">{{team}}</a> on {{on}}; the old address accepts their mail until {{until}}.</p>{{/move}}
        {{#known}}<p class="quiet">They were given <strong>{{known}}</strong>, and still know it.</p>{{/known}}</li>
        {{/moved}}
        </ul>
        </section>
        {{/has_moved}}
        {{#has_ended}}
        <section class="ended" aria-labelledby="ended">
        <h2 id="ended">No longer in use</h2>
        <p class="quiet">You have stopped using these. Mail to a relay address is refused; if you come back, the address is the same.</p>
        <ul class="rows">
        {{#ended}}
        <li><a href="/me/addresses/{{number}}">{{team}}</a>{{#address}} <code>{{address}}</code>{{/address}}
        {{#known}}<p class="quiet">They were given <strong>{{known}}</strong>, and still know it.</p>{{/known}}</li>
        {{/ended}}
        </ul>
        </section>
        {{/has_ended}}
        """#

    static let account = #"""
        <p class="back"><a href="/me">All addresses</a></p>
        <div class="head">
        <h1>{{team}}</h1>
        {{#address}}<p class="mail big"><code>{{address}}</code></p>{{/address}}
        {{^address}}<p class="lead">{{#is_real}}{{#is_past}}They were given your own address.{{/is_past}}{{^is_past}}They write to your own address.{{/is_past}}{{/is_real}}{{^is_real}}There is no address for this team now.{{/is_real}}</p>{{/address}}
        </div>

        <section class="card" aria-labelledby="forwarding">
        <div class="row">
        <div>
        <h2 id="forwarding">Forwarding</h2>
        {{#is_ended}}<p class="quiet">You have stopped using every app of this team{{#address}}: mail is refused{{/address}}.</p>{{/is_ended}}
        {{#is_open}}<p class="quiet">No mail from this team comes through here, so there is nothing to turn off.</p>{{/is_open}}
        {{#move}}<p class="quiet">{{app}} moved to <a href="/me/addresses/{{number}}">{{team}}</a> on {{on}}, and your consent with it. Until {{until}} this address accepts their mail; other mail to it is refused.</p>{{/move}}
        {{#is_active}}
        {{#on}}<p class="quiet">What {{team}} sends reaches {{#inbox}}<strong>{{inbox}}</strong>{{/inbox}}{{^inbox}}you once an inbox is confirmed{{/inbox}}.</p>{{/on}}
        {{^on}}<p class="quiet">What {{team}} sends is refused, and the sender is notified. You can still write to them.</p>{{/on}}
        {{/is_active}}
        </div>
        {{#is_active}}
        <form method="post" action="/me/addresses/{{number}}/forwarding">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <input type="hidden" name="back" value="account">
        <input type="hidden" name="state" value="{{#on}}off{{/on}}{{^on}}on{{/on}}">
        <button class="{{#on}}second{{/on}}" type="submit">{{#on}}Turn off{{/on}}{{^on}}Turn on{{/on}}<span class="unseen"> forwarding</span></button>
        </form>
        {{/is_active}}
        </div>
        </section>

        {{#known}}
        <section class="card" aria-labelledby="given">
        <h2 id="given">What they know about you</h2>
        <p>You gave {{team}} <strong>{{known}}</strong>.</p>
        {{#is_real}}<p class="quiet">What they send to it does not come through here, and cannot be stopped here. {{#is_past}}You have stopped using their apps, but they still know it: ask them to delete it.{{/is_past}}{{^is_past}}If you stop using the apps, ask them to delete it.{{/is_past}}</p>{{/is_real}}
        </section>
        {{/known}}

        {{#written_day}}
        <section class="card" aria-labelledby="known">
        <h2 id="known">They wrote your own address</h2>
        <p>A message from {{team}} had an address of yours in its text, last on {{written_day}}. You hide it from them here, so they know it from elsewhere, or guessed it.</p>
        <p class="quiet">It stays hidden in your replies, as before. Do not confirm it to them; and if you do not want their mail any more, turn forwarding off.</p>
        </section>
        {{/written_day}}

        <section class="card" aria-labelledby="write">
        <h2 id="write">Write to them first</h2>
        {{#written}}
        <div class="result" role="status">
        <p>To reach <strong>{{to}}</strong>, write from your inbox to:</p>
        <p class="mail big"><code>{{reverse}}</code></p>
        <p class="quiet">Add it to your contacts: it works only for you, and they see your relay address. Write from an inbox that you have confirmed here.</p>
        </div>
        {{/written}}
        {{#can_write}}
        <form class="stack" method="post" action="/me/addresses/{{number}}/write#write">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <div class="field">
        <label for="correspondent">Their address</label>
        <div class="pair">
        <input id="correspondent" name="correspondent" type="email" inputmode="email" autocomplete="off" spellcheck="false" autocapitalize="none" required maxlength="254" value="{{typed}}" aria-describedby="correspondent-help{{#problem}} problem{{/problem}}"{{#problem}} aria-invalid="true"{{/problem}}>
        <button class="second" type="submit">Get an address</button>
        </div>
        {{#problem}}<p class="field-problem" id="problem" role="alert">{{problem}}</p>{{/problem}}
        <div class="help" id="correspondent-help">You get another address to write to, which does not show your own. {{team}} can be reached at:
        <ul class="chips">{{#sources}}<li><code>{{name}}</code></li>{{/sources}}</ul></div>
        </div>
        </form>
        {{/can_write}}
        {{^can_write}}<p class="quiet">This is possible as long as you use an app of this team, and if the team has registered the addresses it writes from.</p>{{/can_write}}
        </section>

        <section class="card" aria-labelledby="apps">
        <h2 id="apps">{{#address}}Apps with this address{{/address}}{{^address}}Apps{{/address}}</h2>
        {{^has_consents}}<p class="quiet">None.</p>{{/has_consents}}
        <ul class="rows">
        {{#consents}}
        <li class="row">
        <div>
        <p><strong>{{names}}</strong></p>
        <p class="quiet">{{#live}}Since {{since}}, last signed in {{last}}{{/live}}{{^live}}You have stopped using it{{/live}}</p>
        </div>
        {{#live}}<a class="button second" href="/me/addresses/{{number}}/apps/{{group}}">Stop using<span class="unseen"> {{names}}</span></a>{{/live}}
        </li>
        {{/consents}}
        </ul>
        </section>

        <section class="card" aria-labelledby="traffic">
        <h2 id="traffic">What came through</h2>
        {{^has_months}}<p class="quiet">Nothing so far. Messages are counted; they are never kept.</p>{{/has_months}}
        {{#has_months}}
        <table>
        <caption class="unseen">Messages by month</caption>
        <thead><tr><th scope="col">Month</th><th scope="col" class="number">To you</th><th scope="col" class="number">From you</th></tr></thead>
        <tbody>
        {{#months}}
        <tr><th scope="row">{{month}}</th><td class="number">{{to_you}}</td><td class="number">{{from_you}}</td></tr>
        {{/months}}
        </tbody>
        <tfoot><tr><th scope="row">In all</th><td class="number">{{total_to_you}}</td><td class="number">{{total_from_you}}</td></tr></tfoot>
        </table>
        {{/has_months}}
        </section>
        """#

    static let stop = #"""
        <p class="back"><a href="/me/addresses/{{number}}">{{team}}</a></p>
        <div class="head"><h1>Stop using {{names}}?</h1></div>
        <form class="card stack" method="post" action="/me/addresses/{{number}}/apps/{{group}}">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <ul class="points">
        <li>{{team}} is notified that you no longer want to use it.</li>
        <li>You are signed out there; only they can delete what they know about you.</li>
        {{#is_last}}{{#address}}<li>It is the last app with <code>{{address}}</code>: mail to it is refused from then on.</li>{{/address}}{{/is_last}}
        {{#is_real}}<li>They still know your own address: ask them to delete it.</li>{{/is_real}}
        {{^is_last}}<li>Your address keeps working for the other apps of {{team}}.</li>{{/is_last}}
        <li>If you come back one day, you get the same address.</li>
        </ul>
        <div class="actions">
        <button class="danger" type="submit">Stop using it</button>
        <a class="button second" href="/me/addresses/{{number}}">Keep it</a>
        </div>
        </form>
        """#

    static let inboxes = #"""
        <div class="head">
        <h1>Your inboxes</h1>
        <p class="lead">Mail goes to one of them. You can write to apps from any inbox that you have confirmed.</p>
        </div>
        <ul class="cards">
        {{#inboxes}}
        <li class="card" id="inbox-{{number}}">
        <div class="row">
        <div class="names">
        <h2 class="inbox">{{address}}</h2>
        <p class="quiet">{{#is_verified}}Confirmed {{since}}{{#is_reply_only}}, for writing only{{/is_reply_only}}{{#is_current}}, you signed in with it{{/is_current}}{{/is_verified}}{{^is_verified}}Not confirmed: nothing is sent to it{{/is_verified}}</p>
        </div>
        {{#is_default}}<span class="state is-on">Mail goes here</span>{{/is_default}}
        {{^is_verified}}<span class="state is-off">Not confirmed</span>{{/is_verified}}
        </div>
        {{#item_problem}}<p class="field-problem" id="problem" role="alert">{{item_problem}}</p>{{/item_problem}}
        {{#under_way}}
        <form class="stack code-form" method="post" action="/me/inboxes/{{number}}/code#inbox-{{number}}">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <div class="field">
        <label for="code-{{number}}">The code of the message</label>
        <div class="pair">
        <input id="code-{{number}}" name="code" class="code" type="text" inputmode="numeric" autocomplete="one-time-code" required maxlength="16" pattern="[0-9 ]{6,10}" aria-describedby="code-help-{{number}}{{#item_problem}} problem{{/item_problem}}"{{#item_problem}} aria-invalid="true"{{/item_problem}}>
        <button type="submit">Confirm</button>
        </div>
        <p class="help" id="code-help-{{number}}">Six digits. Its link, or any reply to it, does the same.</p>
        </div>
        </form>
        {{/under_way}}
        {{#has_actions}}
        <div class="actions">
        {{#can_use}}
        <form method="post" action="/me/inboxes/{{number}}/use">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <button class="second" type="submit">Send mail here<span class="unseen">: {{address}}</span></button>
        </form>
        {{/can_use}}
        {{^is_verified}}
        <form method="post" action="/me/inboxes/{{number}}/send#inbox-{{number}}">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <button class="second" type="submit">{{#under_way}}Send another message{{/under_way}}{{^under_way}}Send a message{{/under_way}}<span class="unseen"> to {{address}}</span></button>
        </form>
        {{/is_verified}}
        {{#can_remove}}
        <form method="post" action="/me/inboxes/{{number}}/remove">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <button class="plain" type="submit">Remove<span class="unseen"> {{address}}</span></button>
        </form>
        {{/can_remove}}
        </div>
        {{/has_actions}}
        </li>
        {{/inboxes}}
        </ul>
        <form class="card stack" id="add" method="post" action="/me/inboxes#add">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <h2>Another inbox</h2>
        <div class="field">
        <label for="email">Email address</label>
        <div class="pair">
        <input id="email" name="email" type="email" inputmode="email" autocomplete="email" spellcheck="false" autocapitalize="none" required maxlength="254" value="{{typed}}" aria-describedby="email-help{{#problem}} problem{{/problem}}"{{#problem}} aria-invalid="true"{{/problem}}>
        <button type="submit">Add</button>
        </div>
        {{#problem}}<p class="field-problem" id="problem" role="alert">{{problem}}</p>{{/problem}}
        <p class="help" id="email-help">A message with a code is sent there. To change your inbox: add the new one, confirm it, and send mail there.</p>
        </div>
        </form>
        """#

    static let remove = #"""
        <p class="back"><a href="/me/inboxes">Your inboxes</a></p>
        <div class="head"><h1>Remove {{address}}?</h1></div>
        <form class="card stack" method="post" action="/me/inboxes/{{number}}/remove">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <ul class="points">
        <li>You signed in with it: you are signed out, and sign in again with another one.</li>
        <li>You cannot write to apps from it any more.</li>
        </ul>
        <div class="actions">
        <button class="danger" type="submit" name="sure" value="yes">Remove it</button>
        <a class="button second" href="/me/inboxes">Keep it</a>
        </div>
        </form>
        """#

    static let data = #"""
        <div class="head">
        <h1>Your data</h1>
        <p class="lead">You can see, download and delete everything that {{service}} knows about you.</p>
        </div>
        <section class="card" aria-labelledby="take">
        <h2 id="take">Download it</h2>
        <p>One file with everything: your inboxes and addresses, the apps and since when, counts by day, each decision about your account with its reasons, and every change. It contains no messages: they are never kept.</p>
        <p class="actions"><a class="button" href="/me/data.json" download>Download as JSON</a></p>
        </section>
        <section class="card" aria-labelledby="browsers">
        <h2 id="browsers">Signed in elsewhere?</h2>
        <p>End all your sessions, in this and all other browsers.</p>
        <form class="actions" method="post" action="/me/sign-out">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <input type="hidden" name="everywhere" value="yes">
        <button class="second" type="submit">Sign out everywhere</button>
        </form>
        </section>
        <section class="card" aria-labelledby="away">
        <h2 id="away">Delete everything</h2>
        <p>Ends all your addresses permanently.</p>
        <p class="actions"><a class="button danger" href="/me/delete">Delete everything…</a></p>
        </section>
        """#

    static let delete = #"""
        <p class="back"><a href="/me/data">Your data</a></p>
        {{#sent}}
        <div class="head">
        <h1>Check your inbox</h1>
        <p class="lead">A link was sent to the inbox with which you signed in. Open it in this browser to continue; until then nothing is deleted.</p>
        </div>
        {{/sent}}
        {{^sent}}
        <div class="head"><h1>Delete everything?</h1></div>
        <form class="card stack" method="post" action="/me/delete">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <ul class="points">
        <li>All your relay addresses stop working permanently. Apps that write to them get the answer that they do not exist.</li>
        <li>Each app is notified that your account here is deleted. You may not be able to sign in there any more.</li>
        <li>Your inboxes, names and counts are deleted. If you come back, you are a new user.</li>
        <li>This cannot be undone.</li>
        </ul>
        <p>To be sure that it is you, a link is sent to the inbox with which you signed in.</p>
        <div class="actions">
        <button class="danger" type="submit">Send me the link</button>
        <a class="button second" href="/me/data">Keep everything</a>
        </div>
        </form>
        {{/sent}}
        """#

    static let deleteNow = #"""
        <div class="head">
        <h1>Delete everything now?</h1>
        <p class="lead">This is the last step. This cannot be undone.</p>
        </div>
        <form class="card stack" method="post" action="/me/delete/{{token}}">
        <input type="hidden" name="csrf" value="{{csrf}}">
        <div class="actions">
        <button class="danger" type="submit">Delete everything</button>
        <a class="button second" href="/me">Keep everything</a>
        </div>
        </form>
        """#
}
