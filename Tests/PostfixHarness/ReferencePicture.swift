// Small committed pictures of pages, and a check whether a page still looks like them. Addresses
// are random, so only positions and brightness are compared.

import Foundation

package struct ReferencePicture {
    private let browser: Browser
    private let file: URL

    /// Pixels of a reference's width.
    private static let width = 60
    /// Of 255, over all pixels. A page without its styles, or with one card more or less, is far
    /// beyond this.
    private static let tolerance = 8.0
    /// Allowed difference of heights, as a line may break at another place.
    private static let heights = 0.94...1.06
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("References")

    package init(_ browser: Browser, _ name: String) {
        self.browser = browser
        file = Self.folder.appendingPathComponent(name + ".png")
    }

    /// The fault of a picture, in words; nil only if it equals its reference.
    /// `POSTERN_TEST_RECORD=1` writes the reference.
    package func finding(_ picture: Data) throws -> String? {
        if ProcessInfo.processInfo.environment["POSTERN_TEST_RECORD"] == "1" {
            let small = try browser.value(
                Self.script
                    + "return small(\"\(picture.base64EncodedString())\", \(Self.width)).then(c => c.convertToBlob()).then(async b => "
                    + "btoa(String.fromCharCode(...new Uint8Array(await b.arrayBuffer()))));")
            guard let text = small as? String, let data = Data(base64Encoded: text) else {
                return "no reference was made"
            }
            try FileManager.default.createDirectory(
                at: Self.folder, withIntermediateDirectories: true)
            try data.write(to: file)
            return nil
        }
        guard let reference = try? Data(contentsOf: file) else {
            return "there is no reference \(file.lastPathComponent)"
        }
        let measured = try browser.value(
            Self.script
                + "return difference(\"\(picture.base64EncodedString())\", \"\(reference.base64EncodedString())\", \(Self.width));"
        )
        guard let numbers = measured as? [Double], numbers.count == 2 else {
            return "the pictures could not be compared"
        }
        if !Self.heights.contains(numbers[0]) {
            return "\(Int((numbers[0] * 100).rounded())) % as high as its reference"
        }
        return numbers[1] <= Self.tolerance
            ? nil : "differs from its reference by \(numbers[1].rounded()) of 255"
    }

    /// Runs within the open page. A bitmap of octets is not a picture that the page loads, which
    /// its policy would forbid.
    private static let script = """
        const bitmap = text => createImageBitmap(new Blob([Uint8Array.from(atob(text), c => c.charCodeAt(0))], {type: 'image/png'}));
        const small = async (text, width, height) => {
            const image = await bitmap(text);
            const canvas = new OffscreenCanvas(width, height ?? Math.max(1, Math.round(image.height * width / image.width)));
            const context = canvas.getContext('2d');
            context.imageSmoothingQuality = 'high';
            context.drawImage(image, 0, 0, canvas.width, canvas.height);
            return canvas;
        };
        const difference = async (text, reference, width) => {
            const there = await bitmap(reference), now = await small(text, width);
            const ratio = now.height / there.height;
            const pixels = c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            const a = pixels(await small(text, 40, 60)), b = pixels(await small(reference, 40, 60));
            let sum = 0;
            for (let i = 0; i < a.length; i++) sum += Math.abs(a[i] - b[i]);
            return [ratio, sum / (a.length * 3 / 4)];
        };

        """
}
