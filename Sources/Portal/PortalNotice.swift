// The last action, as the next page reports it: next to its subject.

import Accounts
import Languages

/// The last action. The raw value is a word in a cookie, in lower-case letters.
enum PortalNotice: String, CaseIterable, Sendable {
    // One address
    case forwardingOn = "on"
    case forwardingOff = "off"
    case noted, scheduled, replaced, hidden, blocked, unblocked, objected, withdrawn, led, stopped
    // Several addresses
    case severalOn = "allon"
    case severalOff = "alloff"
    case noneChosen = "none"
    // Inboxes
    case codeSent = "sent"
    case confirmed
    case refusalsTold = "told"
    case refusalsNotTold = "untold"
    case mailLed = "used"
    case inboxRemoved = "removed"
    // Sign-in
    case passkeyAdded = "added"
    case passkeyRemoved = "forgotten"
    case authenticatorRemoved = "appremoved"
    case twoFactorsOff = "twooff"
    case recoveryStopped = "stoppedit"
    case sessionEnded = "ended"
    case signedOut = "out"
    case signedInBefore = "already"
    // All data
    case deletionPlanned = "planned"
    /// With the number of `KeptRecords`.
    case recordsKept = "records"
    case kept

    /// The part of a page that the notice is about.
    enum Place: Sendable, Hashable {
        case head, forwarding, own, apps, checks, senders
        case inbox, refusals
        case passkeys, factors, sessions
        /// Above everything else.
        case page
    }

    var place: Place {
        switch self {
        case .forwardingOn, .forwardingOff, .scheduled, .led: .forwarding
        case .noted: .own
        case .replaced, .hidden: .head
        case .blocked, .unblocked: .senders
        case .objected, .withdrawn: .checks
        case .stopped: .apps
        case .codeSent, .confirmed, .mailLed: .inbox
        case .refusalsTold, .refusalsNotTold: .refusals
        case .passkeyAdded, .passkeyRemoved: .passkeys
        case .authenticatorRemoved, .twoFactorsOff, .recoveryStopped: .factors
        case .sessionEnded: .sessions
        case .severalOn, .severalOff, .noneChosen, .inboxRemoved, .signedOut, .signedInBefore,
            .deletionPlanned, .recordsKept, .kept:
            .page
        }
    }

    func text(_ language: Catalogue) -> String {
        switch self {
        case .forwardingOn:
            language.text("Forwarding is on: mail to this address reaches you again.")
        case .forwardingOff:
            language.text(
                "Forwarding is off: mail to this address is refused, and its sender is notified.")
        case .noted, .scheduled: language.text("Saved.")
        case .replaced: language.text("This is your new address. The old one no longer works.")
        case .hidden: language.text("This is the address that the app gets from now on.")
        case .blocked: language.text("Mail from there is refused from now on.")
        case .unblocked: language.text("Mail from there is forwarded again.")
        case .objected: language.text("Your objection is noted.")
        case .withdrawn: language.text("Your objection is withdrawn.")
        case .led: language.text("From now on mail to this address goes to the inbox you chose.")
        case .stopped: language.text("You have stopped using the app.")
        case .severalOn: language.text("Forwarding is on for the addresses that you chose.")
        case .severalOff: language.text("Forwarding is off for the addresses that you chose.")
        case .noneChosen: language.text("Nothing was changed: tick an address first.")
        case .codeSent:
            language.text("A message is on its way. Enter its code here, or open its link.")
        case .confirmed: language.text("The inbox is confirmed.")
        case .refusalsTold: language.text("You are told by mail what is refused.")
        case .refusalsNotTold: language.text("You are not told by mail what is refused.")
        case .mailLed: language.text("Mail goes to this inbox from now on.")
        case .inboxRemoved: language.text("The inbox is removed.")
        case .passkeyAdded: language.text("The passkey is added. Use it the next time you sign in.")
        case .passkeyRemoved:
            language.text(
                "The passkey is removed. Your device may still offer it, but you cannot sign in with it."
            )
        case .authenticatorRemoved:
            language.text("The authenticator app is removed: its codes no longer count.")
        case .recoveryStopped:
            language.text("It is stopped. Someone else reads your inbox: change its password.")
        case .twoFactorsOff: language.text("From now on, a code by mail is enough to sign in.")
        case .sessionEnded: language.text("That browser is signed out.")
        case .signedOut: language.text("You are signed out.")
        case .signedInBefore:
            language.text(
                "You were signed in here already. To use another address, sign out first.")
        case .deletionPlanned:
            language.text("The day is set. A message tells you so, in case it was not you.")
        case .recordsKept: language.text("Your account is deleted")
        case .kept: language.text("Nothing is deleted.")
        }
    }
}

extension PortalRequest {
    /// The notice of the last action, if it is about this part of the page.
    /// - Parameter number: the item concerned, by the store's number; nil if the page has the part
    ///   only once.
    func notice(_ place: PortalNotice.Place, of number: Int64? = nil) -> String? {
        guard let told, told.place == place, number == nil || number == toldOf else { return nil }
        return told.text(language)
    }
}
