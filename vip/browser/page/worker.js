// Python in a worker: it loads, and answers one question after the other.
importScripts("pyodide.js");

async function fetched(name) {
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name}: ${answer.status} ${answer.statusText}`);
  return new Uint8Array(await answer.arrayBuffer());
}

async function start() {
  const here = new URL(".", self.location).href;
  const [python, sources, scene] = await Promise.all([
    loadPyodide({ indexURL: here }),
    fetched("vip.zip"),
    fetched("stereo.npz"),
  ]);
  await python.loadPackage("numpy", { messageCallback: () => {} });
  python.unpackArchive(sources, "zip");
  python.FS.writeFile("/stereo.npz", scene);
  return python.pyimport("vip.browser.session").BrowserSession("/stereo.npz");
}

const session = start();
session.then(
  () => postMessage({ ready: true }),
  (error) => postMessage({ failed: String(error.message || error) }),
);

onmessage = async ({ data }) => {
  try {
    postMessage({ id: data.id, answer: (await session).ask(data.question) });
  } catch (error) {
    postMessage({ id: data.id, answer: JSON.stringify({ error: String(error.message || error) }) });
  }
};
