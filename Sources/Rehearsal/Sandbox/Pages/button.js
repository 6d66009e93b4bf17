// Shows a change at once, and makes a PNG of the button.
"use strict";
const form = document.querySelector("form");
form.addEventListener("change", () => { if (form.reportValidity()) form.submit(); });
document.getElementById("png").hidden = false;
for (const link of document.querySelectorAll("#png a")) {
  link.addEventListener("click", async (event) => {
    event.preventDefault();
    const scale = Number(link.dataset.scale), source = document.getElementById("button");
    const image = new Image(), canvas = document.createElement("canvas");
    const octets = URL.createObjectURL(new Blob([await (await fetch(source.src)).text()], {type: "image/svg+xml"}));
    image.src = octets;
    await image.decode();
    [canvas.width, canvas.height] = [image.naturalWidth * scale, image.naturalHeight * scale];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(octets);
    canvas.toBlob((picture) => {
      const saved = document.createElement("a");
      saved.href = URL.createObjectURL(picture);
      saved.download = scale === 1 ? "sign-in.png" : `sign-in@${scale}x.png`;
      document.body.dataset.png = `${canvas.width}x${canvas.height} ${picture.size}`;
      saved.click();
    }, "image/png");
  });
}
