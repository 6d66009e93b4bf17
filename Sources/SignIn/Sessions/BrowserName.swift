// The browser of a session, by family and system only, so that its user can tell sessions apart.

/// From the field User-Agent (RFC 9110 section 10.1.5). Browsers may write anything there, so it is
/// only for people to read, never for decisions.
package struct BrowserName: Sendable, Hashable {
    package enum Family: String, Sendable, CaseIterable {
        case edge = "Edge"
        case opera = "Opera"
        case samsung = "Samsung Internet"
        case firefox = "Firefox"
        case chrome = "Chrome"
        case safari = "Safari"

        /// The marks of each browser in the field. The order decides, because most browsers name
        /// others too.
        fileprivate var marks: [String] {
            switch self {
            case .edge: ["Edg/", "EdgA/", "EdgiOS/"]
            case .opera: ["OPR/", "OPT/"]
            case .samsung: ["SamsungBrowser/"]
            case .firefox: ["Firefox/", "FxiOS/"]
            case .chrome: ["Chrome/", "CriOS/", "Chromium/"]
            case .safari: ["Safari/"]
            }
        }
    }

    package enum System: String, Sendable, CaseIterable {
        case iPhone
        case iPad
        case android = "Android"
        case windows = "Windows"
        case chromeOS = "ChromeOS"
        case macOS
        case linux = "Linux"

        fileprivate var marks: [String] {
            switch self {
            case .iPhone: ["iPhone"]
            case .iPad: ["iPad"]
            case .android: ["Android"]
            case .windows: ["Windows"]
            case .chromeOS: ["CrOS"]
            case .macOS: ["Macintosh", "Mac OS X"]
            case .linux: ["Linux", "X11"]
            }
        }
    }

    package let family: Family
    package let system: System

    /// - Parameter userAgent: the field. The result is nil if it is absent, is longer than 1,000
    ///   octets, or names none of these browsers.
    package init?(userAgent: String?) {
        guard let text = userAgent?.utf8, text.count <= 1_000 else { return nil }
        func has(_ mark: String) -> Bool { text.firstRange(of: mark.utf8) != nil }
        guard let family = Family.allCases.first(where: { $0.marks.contains(where: has) }),
            let system = System.allCases.first(where: { $0.marks.contains(where: has) })
        else { return nil }
        (self.family, self.system) = (family, system)
    }

    /// As in the store: `Firefox/Linux`.
    package var stored: String { "\(family.rawValue)/\(system.rawValue)" }

    package init?(stored: String) {
        let parts = stored.split(separator: "/")
        guard parts.count == 2, let family = Family(rawValue: String(parts[0])),
            let system = System(rawValue: String(parts[1]))
        else { return nil }
        (self.family, self.system) = (family, system)
    }
}
